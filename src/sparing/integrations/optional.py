"""Importing a package that may not be there."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sparing.errors import MissingExtraError


def optional_module(name: str, extra: str) -> Any:
    """The module of that name; MissingExtraError, which names the extra, without its package.

    >>> optional_module("json", "none").dumps([1])
    '[1]'
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name != package:  # it is there, and broken: say so
            raise
        raise MissingExtraError(package, extra) from error

"""Compile the kernels before a run, and say so when it will take time."""

from __future__ import annotations

from collections.abc import Callable

from sparing.kernels import compilation

# Measured for all kernels on one core from an empty cache; a cached start takes under a second.
COMPILE_SECONDS = 30
NOTICE = f"compiling numerical kernels, once per machine, about {COMPILE_SECONDS} s"


def compile_with_notice(announce: Callable[[], None]) -> None:
    """Compile or load every kernel; ``announce()`` first when some are not in the cache."""
    if not compilation.all_cached():
        announce()
    compilation.compile_all()

"""Warnings of a run: texts that know what they are about."""

from __future__ import annotations

import enum

from sparing.readable_text import readable


class WarningTopic(enum.Enum):
    """What a warning is about: the quality of a result, or the record of its run."""

    CONVERGENCE = enum.auto()
    SEARCH = enum.auto()
    BOX = enum.auto()
    FAILURES = enum.auto()
    WEIGHTS = enum.auto()
    GRADIENTS = enum.auto()

    INCOMPLETE_LINE = enum.auto()
    LOCK_TAKEN_OVER = enum.auto()
    SEED_KEPT = enum.auto()
    DAMAGED_FILE = enum.auto()
    DAMAGED_JOURNAL = enum.auto()
    REBUILT_RESULT = enum.auto()


class WarningText(str):
    """What a person should know, as the text it is read as, with its ``topic``."""

    topic: WarningTopic

    def __new__(cls, topic: WarningTopic, text: str) -> WarningText:
        """The text, with its topic beside it."""
        warning = super().__new__(cls, readable(text))  # it may quote a target
        warning.topic = topic
        return warning

    def __reduce__(self) -> tuple[type[WarningText], tuple[WarningTopic, str]]:
        return WarningText, (self.topic, str(self))  # copies keep the topic


def topic_of(warning: str) -> WarningTopic | None:
    """The topic; None for a plain text, as other stores and older files have it."""
    return warning.topic if isinstance(warning, WarningText) else None

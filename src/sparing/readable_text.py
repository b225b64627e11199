"""Text and moments from outside, as they may be shown on a terminal or a page.

Messages of exceptions, names, tags and whatever a file holds may have escape sequences in them,
which a terminal obeys, or halves of characters, which no stream can write. Records keep them as
they are; what is shown goes through `readable`.
"""

from __future__ import annotations

import re
from datetime import datetime

# Control characters but tab and line feed, separators of lines, marks that turn the direction of
# writing, and surrogates.
UNREADABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def readable(text: str) -> str:
    r"""The text with whatever is not to be seen written as its code, such as \x1b for an escape."""
    return UNREADABLE.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def moment_text(seconds: float, *, to_the_minute: bool = False) -> str:
    """A Unix time as local date and time; the number itself where no calendar reaches."""
    try:
        local = datetime.fromtimestamp(seconds)
        if to_the_minute:
            return local.isoformat(" ", "minutes")
        return local.astimezone().isoformat(" ", "seconds")
    except (OverflowError, OSError, ValueError):
        return f"{seconds:g} s"

import math

import pytest

from sparing.readable_text import moment_text, readable


def test_plain_text_stays_as_it_is():
    text = "λ ± 0.1, naïve, 模型, 🙂\n\tindented"
    assert readable(text) == text


def test_what_a_terminal_obeys_is_spelt_out():
    hostile = "\x1b[2J\r\x07\x9b31m\x7f\u202e\u2028\ud800"
    shown = readable(hostile)
    assert shown == r"\x1b[2J\r\x07\x9b31m\x7f\u202e\u2028\ud800"
    assert readable(shown) == shown
    shown.encode("utf-8")


def test_moments_that_no_calendar_has_are_numbers():
    assert moment_text(1e9).startswith("2001-09-0")
    assert moment_text(1e9, to_the_minute=True).startswith("2001-09-0")
    for seconds in (-1e12, 1e300, math.inf, -math.inf, math.nan):
        assert moment_text(seconds) == f"{seconds:g} s"


@pytest.mark.parametrize("code", range(0x20))
def test_no_control_character_passes_but_tab_and_line_feed(code):
    assert (readable(chr(code)) == chr(code)) == (chr(code) in "\t\n")

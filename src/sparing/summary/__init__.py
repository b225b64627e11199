"""A run in words: its numbers, what they mean, what to worry about, what to do next."""

from sparing.summary.checks import Check, Light, Topic, check_run
from sparing.summary.render import html_summary, text_summary

__all__ = ["Check", "Light", "Topic", "check_run", "html_summary", "text_summary"]

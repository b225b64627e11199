"""The one error the command line shows as a plain message."""


class BenchmarkError(Exception):
    """What was asked for cannot be run; the message says what to do instead."""

"""The live page of a run: ``sparing.live.watch``; the work is done in `sparing.running.live`."""

from sparing.running.live import make_server, watch

__all__ = ["make_server", "watch"]

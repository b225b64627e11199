"""A run as one HTML page that needs nothing else: no network, no script, no other file.

``result.report("run.html")`` writes it; `sparing.live` serves the same page for a run in progress.
jinja2 and matplotlib are optional extras (``sparing[report]``).
"""

from sparing.report.page import LIVE_SCRIPT, LiveStatus, report_page, waiting_page, write_report

__all__ = ["LIVE_SCRIPT", "LiveStatus", "report_page", "waiting_page", "write_report"]

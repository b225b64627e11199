"""Draw every picture of the documentation again: ``python docs/figures/draw.py``.

The pictures of "How it works" have a module of their own. Those of the other pages are what the
code on the page writes; what it prints is written into the page as well.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

import matplotlib as mpl
from how_it_works import draw_all
from page_code import with_outputs

DOCS = Path(__file__).resolve().parent.parent
IMAGES = DOCS / "images"
PAGES = ("quick-start.md", "tutorial.md", "reading-a-result.md", "several-runs.md", "diagnosing.md")

if __name__ == "__main__":
    mpl.rcParams["svg.hashsalt"] = "sparing"  # the same drawing gives the same file
    draw_all(IMAGES)
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        for page in (DOCS / name for name in PAGES):
            text = page.read_text(encoding="utf-8")
            page.write_text(with_outputs(text, str(page)), encoding="utf-8")
        for picture in Path(directory).glob("*.svg"):
            if (IMAGES / picture.name).exists():
                shutil.copy(picture, IMAGES)

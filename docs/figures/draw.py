"""Draw every picture of the documentation again: ``python docs/figures/draw.py``.

The pictures of "How it works" have a module of their own. Those of the other pages are what the
code on the page writes.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

import matplotlib as mpl
from how_it_works import draw_all
from page_code import run_page

DOCS = Path(__file__).resolve().parent.parent
IMAGES = DOCS / "images"
PAGES_THAT_DRAW = ("quick-start.md", "tutorial.md")

if __name__ == "__main__":
    mpl.rcParams["svg.hashsalt"] = "sparing"  # the same drawing gives the same file
    draw_all(IMAGES)
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        for name in PAGES_THAT_DRAW:
            run_page(DOCS / name)
        for picture in Path(directory).glob("*.svg"):
            shutil.copy(picture, IMAGES)

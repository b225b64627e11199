"""Run a page's Python as a reader would, note how long each block took, keep every picture.

``python page_reader.py PAGE PICTURES STEPS``, by an interpreter that has sparing and nothing of
this project besides: `first_minutes.py` starts it in a fresh clone.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "figures"))

import matplotlib
from matplotlib.figure import Figure
from page_code import run_blocks  # pyright: ignore[reportMissingImports]


def main(page: Path, pictures: Path, steps: Path) -> None:
    """A line ``LINE SECONDS`` in ``steps`` for each block that ran to its end."""
    matplotlib.use("Agg")
    save, begin = Figure.savefig, time.perf_counter()

    def save_twice(figure: Figure, *args, **kwargs) -> None:
        save(figure, *args, **kwargs)
        n_drawn = len(list(pictures.glob(f"{page.stem}-*.png")))
        save(figure, pictures / f"{page.stem}-{n_drawn + 1}.png")

    def done(line: int) -> None:
        nonlocal begin
        now = time.perf_counter()
        with steps.open("a") as file:
            file.write(f"{line} {now - begin}\n")
        begin = now

    Figure.savefig = save_twice
    run_blocks(page.read_text(encoding="utf-8"), str(page), done)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

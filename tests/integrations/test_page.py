"""The blocks of docs/integrations.md that need a large package; the others run with all pages."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

os.environ["PYTENSOR_FLAGS"] = "mode=FAST_COMPILE,linker=py,cxx=,blas__ldflags="
PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
BLOCKS = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
PACKAGES = [re.match(r"(?:import numpy as np\n)?import (\w+)", code).group(1) for code in BLOCKS]


def run(package):
    pytest.importorskip(package)
    namespace = {}
    exec(compile(BLOCKS[PACKAGES.index(package)], str(PAGE), "exec"), namespace)
    return namespace


def test_the_page_has_a_block_for_each_package():
    assert PACKAGES == ["pymc", "numpyro", "jax", "torch"]


@pytest.mark.parametrize("package", ["jax", "torch"])
def test_functions(package):
    run(package)


@pytest.mark.parametrize("package", ["pymc", "numpyro"])
def test_the_same_model_in_both_languages(package):
    pytest.importorskip("arviz")
    names = run(package)
    # By Simpson's rule on a grid of 3001 x 3001 points.
    assert names["result"].log_evidence == pytest.approx(-8.76867, abs=0.05)
    assert set(names["draws"]) == {"level", "spread"}
    assert np.all(names["draws"]["spread"] > 0)

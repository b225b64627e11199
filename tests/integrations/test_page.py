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
    assert PACKAGES == ["pymc", "numpyro", "cobaya", "bilby", "jax", "torch"]


@pytest.mark.parametrize("package", ["jax", "torch"])
def test_functions(package):
    run(package)


# Of the model that four blocks have, by Simpson's rule on a grid of 3001 x 3001 points.
LOG_EVIDENCE = -8.76867


def test_the_same_model_in_cobaya():
    products = run("cobaya")["products"]
    assert products["logZ"] == pytest.approx(LOG_EVIDENCE, abs=0.05)
    assert len(products["sample"]) == 4000


def test_the_same_model_in_bilby():
    result = run("bilby")["bilby_result"]
    assert result.log_evidence == pytest.approx(LOG_EVIDENCE, abs=0.05)
    assert np.all(result.posterior["spread"] > 0)


@pytest.mark.parametrize("package", ["pymc", "numpyro"])
def test_the_same_model_in_both_languages(package):
    pytest.importorskip("arviz")
    names = run(package)
    assert names["result"].log_evidence == pytest.approx(LOG_EVIDENCE, abs=0.05)
    assert set(names["draws"]) == {"level", "spread"}
    assert np.all(names["draws"]["spread"] > 0)

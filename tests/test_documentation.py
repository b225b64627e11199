"""The documentation: its code runs, its links lead somewhere, its reference is complete.

Every ```python block of every page is executed, in order and in one namespace within a page.
"""

import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparing
import sparing.executors
import sparing.integrations
import sparing.plots
import sparing.strategies
import sparing.testing

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?[^)]*\)")
FENCED = re.compile(r"^```.*?^```[^\S\n]*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*$", re.MULTILINE)


def module_from(path):
    """A module of the documentation's own tools, which are no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


page_code = module_from(DOCS / "figures" / "page_code.py")


def pages():
    top_level = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
    found = [ROOT / name for name in top_level if (ROOT / name).exists()]
    return found + sorted(DOCS.rglob("*.md"))


def page_name(path):
    return str(path.relative_to(ROOT))


def read(path):
    return path.read_text(encoding="utf-8")


# ---------------------------------------------------------------------- code


def check_tutorial(namespace):
    """Against importance sampling with 200,000 draws and closed-form models (Student proposal)."""
    first, second = namespace["result"], namespace["other"]
    for run, exact in ((first, 1.540), (second, 9.665)):
        assert abs(run.log_evidence - exact) < 3 * run.log_evidence_sd < 0.3
    means = np.array([1.5205, 0.05144, 29.723, 0.1165]), np.array([0.9048, 0.04865, 30.639, 0.0379])
    sds = np.array([0.218, 0.00636, 1.99, 0.0289]), np.array([0.0312, 0.00202, 0.629, 0.0136])
    for run, mean, sd in zip((first, second), means, sds, strict=True):
        assert np.all(np.abs(run.posterior.mean - mean) < 0.25 * sd)
        np.testing.assert_allclose(run.posterior.sd, sd, rtol=0.2)
    assert namespace["comparison"].best.name == "constant rate"


def check_angle(namespace):
    """Against the closed form: the product of von Mises densities is one."""
    angles, posterior = namespace["angles"], namespace["posterior"]
    direction = np.angle(np.exp(1j * angles).sum())
    np.testing.assert_allclose(np.exp(1j * posterior.mean[0]), np.exp(1j * direction), atol=0.03)


# What a page claims is compared with something independent where there is such a thing.
CHECKS = {"docs/tutorial.md": check_tutorial, "docs/bounds-and-priors.md": check_angle}
PAGES_WITH_CODE = [path for path in pages() if page_code.code_blocks(read(path))]


# What pages may import beside the dependencies of `dev`, where there is no such package.
OPTIONAL = {"arviz", "corner", "getdist", "jax", "numpyro", "pandas", "pymc", "torch"}


@pytest.mark.parametrize("path", PAGES_WITH_CODE, ids=page_name)
def test_code_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what a block writes goes there
    try:
        namespace = page_code.run_page(path)
    except sparing.MissingExtraError as missing:
        pytest.skip(str(missing))
    except ModuleNotFoundError as missing:
        if missing.name not in OPTIONAL:
            raise
        pytest.skip(str(missing))
    CHECKS.get(page_name(path), lambda _: None)(namespace)


def test_every_page_that_should_have_code_has():
    with_code = {path.stem for path in PAGES_WITH_CODE}
    assert with_code >= {"index", "quick-start", "tutorial", "bounds-and-priors", "faq"}


def test_blocks_share_a_namespace_in_order():
    text = "```python\nx = 1\n```\ntext\n```text\nx = 5\n```\n```pycon\n>>> x = 6\n```\n" + (
        "```python\nx += 1\n```\n"
    )
    assert page_code.run_blocks(text, "page")["x"] == 2


def test_what_blocks_print_is_written_into_the_page():
    page = (
        "# Title\n\n```python\nfor x in range(4):\n    print(x)\n```\n\n```text\n{}```\n\n"
        "```python\nprint(x * x)\n```\n\nsome words\n\n```text\nkept\n```\n\n"
        "```python\nprint(x, 5, sep='\\n')\n```\n\n```text\n{}```\nthe end\n"
    )
    assert page_code.with_outputs(page.format("0\n...\n", "1\n"), "page") == page.format(
        "0\n...\n", "3\n5\n"
    )
    assert page_code.with_outputs(page.format("old\n", ""), "page") == page.format(
        "0\n1\n2\n3\n", "3\n5\n"
    )


def test_a_failing_block_is_reported_at_its_line():
    text = "# Title\n\n```python\nfine = 1\nraise RuntimeError('here')\n```\n"
    with pytest.raises(RuntimeError, match="here") as caught:
        page_code.run_blocks(text, "page.md")
    frame = caught.traceback[-1]
    assert (str(frame.path).endswith("page.md"), frame.lineno + 1) == (True, 5)


# ---------------------------------------------------------------------- links and pictures


def anchors(path):
    """The anchors of a page's headings, as GitHub and the built site make them."""
    headings = HEADING.findall(FENCED.sub("", read(path)))
    words = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {text.replace(" ", "-") for text in words}


@pytest.mark.parametrize("path", pages(), ids=page_name)
def test_links_lead_somewhere(path):
    missing = []
    for target, anchor in LINK.findall(FENCED.sub("", read(path))):
        page = path.parent / target if target else path
        known = page.exists() and (not anchor or anchor in anchors(page))
        missing += [] if known else [f"{target}#{anchor}"]
    assert not missing


# A module or file by its path: vbmc/engine, store/, tests/conftest.py, surrogate/mean.py.
PATH = re.compile(r"(?<![\w/.-])([a-z_]+/(?:[a-z_]+/)*(?:[a-z_]+(?:\.py)?)?)(?![\w/*.-])")
PAGES_WITH_PATHS = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", DOCS / "extending.md"]


PLACES = (ROOT, ROOT / "src" / "sparing", ROOT / "tests")


def paths_in(text):
    """Paths into known folders, in code spans and in blocks that are not run."""
    code = re.findall(r"`([^`\n]+)`", FENCED.sub("", text))
    code += re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    found = {path for part in code for path in PATH.findall(part)}
    return {path for path in found if any((p / path.split("/")[0]).is_dir() for p in PLACES)}


def leads_somewhere(path):
    return any((p / path).exists() or (p / f"{path}.py").exists() for p in PLACES)


@pytest.mark.parametrize("page", PAGES_WITH_PATHS, ids=page_name)
def test_paths_lead_somewhere(page):
    paths = paths_in(read(page))
    assert len(paths) > 5
    assert not [path for path in sorted(paths) if not leads_somewhere(path)]


def test_a_path_that_leads_nowhere_is_found():
    text = "`vbmc/engine`, `vbmc/gone.py`, `docs/index.md`, `dx/du`\n```\nstore/lost  text\n```\n"
    paths = paths_in(text)
    assert {path for path in paths if not leads_somewhere(path)} == {"vbmc/gone.py", "store/lost"}


def test_every_picture_is_shown():
    text = "".join(read(path) for path in pages())
    unused = [path.name for path in (DOCS / "images").iterdir() if path.name not in text]
    assert not unused


def test_pictures_of_how_it_works_are_drawn(tmp_path):
    how_it_works = module_from(DOCS / "figures" / "how_it_works.py")
    how_it_works.draw_all(tmp_path)
    shown = set(re.findall(r"images/(how-[\w-]+\.svg)", read(DOCS / "how-it-works.md")))
    assert shown == {path.name for path in tmp_path.iterdir()}
    for path in tmp_path.iterdir():
        assert "<path" in read(path)


# ---------------------------------------------------------------------- reference


def documented_names():
    text = "".join(read(path) for path in (DOCS / "api").glob("*.md"))
    return set(re.findall(r"^\.\. (?:auto\w+|py:data):: (\S+)$", text, re.MULTILINE))


@pytest.mark.parametrize(
    "module", [sparing, sparing.executors, sparing.strategies, sparing.testing]
)
def test_reference_has_every_public_name(module):
    assert not set(module.__all__) - documented_names()


def test_reference_has_every_integration():
    package = sparing.integrations
    names = [item.name for item in pkgutil.iter_modules(package.__path__, "sparing.integrations.")]
    modules = [importlib.import_module(name) for name in names]
    public = {f"{m.__name__}.{name}" for m in modules for name in getattr(m, "__all__", ())}
    assert len(public) > 5
    assert not public - documented_names()


def test_reference_has_every_picture_and_colour():
    text = read(DOCS / "api" / "plots.md")
    assert not [name for name in sparing.plots.__all__ if name not in text]


plain_docstrings = module_from(DOCS / "_extensions" / "plain_docstrings.py")


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Log q(x) at x, |J| and a_b*c.", ["Log q(x) at x, \\|J\\| and a\\_b\\*c."]),
        ("Of `x` and ``y``s.", ["Of ``x`` and ``y``\\ s."]),
        ("x0    a point\nseed  same seed,\n      same run", None),
        ("x0:  a point\nseed: same seed, same run", None),
        ("    x0    a point\n    seed  same seed, same run", None),
        ("    f = a + b", ["::", "", "    f = a + b"]),
        (">>> 1 + 1\n2", [">>> 1 + 1", "2"]),
        ("- one\n- two", ["- one", "- two"]),
    ],
)
def test_docstrings_become_markup(docstring, expected):
    table = ["``x0``", "    a point", "``seed``", "    same seed, same run"]
    assert plain_docstrings.convert(docstring.split("\n")) == [*(expected or table), ""]


# ---------------------------------------------------------------------- the site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for package in ("sphinx", "myst_parser", "furo", "latex2mathml"):
        pytest.importorskip(package)
    directory = tmp_path_factory.mktemp("site")
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", directory / "doctrees"]
    build = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, DOCS, directory / "html"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stderr
    return directory / "html"


def test_site_has_a_page_for_every_source(site):
    for path in DOCS.rglob("*.md"):
        assert (site / path.relative_to(DOCS)).with_suffix(".html").exists()


def test_site_fetches_nothing(site):
    fetching = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*(?:src|href)=["'](?:https?:)?//""")
    assert not [str(path) for path in site.rglob("*.html") if fetching.search(read(path))]


def test_site_shows_equations_and_the_reference(site):
    assert read(site / "how-it-works.html").count("<math") > 20
    reference = read(site / "api" / "running.html")
    for text in ('id="sparing.infer"', 'id="sparing.Problem.log_joint"', "max_evaluations"):
        assert text in reference


# ---------------------------------------------------------------------- commands


def test_readme_has_code_and_both_commands():
    text = read(ROOT / "README.md")
    assert len(page_code.code_blocks(text)) >= 3
    makefile = read(ROOT / "Makefile")
    for command in ("demo", "test"):
        assert f"make {command}" in text
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


def test_continuous_integration_runs_the_readme_s_command():
    assert re.search(r"^exec make test$", read(ROOT / ".ci" / "run"), re.MULTILINE)

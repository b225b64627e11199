"""How Sphinx builds the documentation; `make docs` does. Nothing is fetched from the network."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "sparing"
author = "The sparing developers"
copyright = author
version = release = installed_version("sparing")

default_role = "py:obj"  # `Posterior` in a table leads to its description
extensions = [
    "myst_parser",  # pages are Markdown
    "sphinx.ext.autodoc",  # the reference comes from docstrings
    "sphinx.ext.autosummary",  # and begins with tables of what there is
    "plain_docstrings",  # which are written for help(), not for Sphinx
    "mathml",  # equations without JavaScript and without a font server
]
exclude_patterns = ["_build"]
templates_path: list[str] = []

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # links such as faq.md#periodic-parameters

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what is accepted; annotations are for type checkers
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
autosummary_generate = False

html_theme = "furo"
html_title = f"sparing {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00598b", "color-brand-content": "#00598b"},
    "dark_css_variables": {"color-brand-primary": "#6db9e8", "color-brand-content": "#6db9e8"},
}
pygments_style = "friendly"

"""Equations as MathML, which browsers draw themselves: no JavaScript, no font server, offline."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator


def show_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write ``$...$``."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def show_display(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write ``$$...$$``, which may be wider than a phone: it scrolls by itself."""
    formula = convert(node.astext(), display="block")
    translator.body.append(f'<div class="math-display">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (show_inline, None), (show_display, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Renders formulas to MathML as the site is built, so that a reader needs no script."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

logger = logging.getLogger(__name__)


def setup(app):
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(_inline, None),
        block_renderers=(_block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer, node):
    writer.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _block(writer, node):
    writer.body.append(f"<p>{_mathml(node, 'block')}</p>")
    raise nodes.SkipNode


def _mathml(node, display):
    mathml = convert(node.astext(), display=display)
    # Commands that the converter does not know stay as they are.
    if "\\" in mathml:
        logger.warning("unknown command in %s", node.astext(), location=node)
    return mathml

"""The documentation site: `make docs` builds it, any warning being an error."""

import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

# This is imported before autodoc looks at `reprt.models.settings`. Autodoc gives its
# classes annotations of pydantic's own, and pydantic then refuses subclasses that take
# other keys.
import reprt  # noqa: E402

project = "reprt"
copyright = "the authors of reprt, Apache License 2.0"
version = release = reprt.__version__

extensions = [
    "commands",
    "mathml",
    "myst_nb",
    "page_layout",
    "plain_docstrings",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"reprt {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# The index of the API does not list every method.
toc_object_entries = False
# Docstrings write `name`, as Markdown does.
default_role = "code"
# Quotes, dashes and ellipses are made typographic.
smartquotes_action = "qDe"

# Notebooks come with their outputs, and show as they are.
nb_execution_mode = "off"
nb_merge_streams = True
# Plain Markdown has no tables, and MyST has.
nb_render_markdown_format = "myst"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {
    "members": True,
    # Every layer has these methods of Keras.
    "exclude-members": "build, call, compute_mask, compute_output_shape, from_config, "
    "get_config, result, update_state, model_config",
}
napoleon_custom_sections = [("Call arguments", "params_style")]
napoleon_use_rtype = False


# Pages on results stand beside the files that they are made of; the site has a page for
# each that includes it. Notebooks come by the link docs/notebooks. Links lead to files
# where they stand, and on the site to its pages.
RESULTS = HERE.parent / "experiments" / "results"
TO_RESULTS = re.compile(r"\]\((?:\.\./)+experiments/results/([\w/]+)/\w+\.md\)")
# The line of a benchmark's page that says how it was run.
COMMAND = re.compile(r"^- command: (.*)$", re.M)
TO_NOTEBOOK = re.compile(r"\[([^]]+)\]\((?:\.\./)+(notebooks/\w+)\.ipynb\)")


def _include_results():
    shutil.rmtree(HERE / "results", ignore_errors=True)
    (HERE / "results").mkdir()
    for page in sorted(RESULTS.glob("**/*.md")):
        # The page of the same folder includes its notes.
        if page.name == "notes.md":
            continue
        parts = page.parent.relative_to(RESULTS).parts
        lines = [
            f"```{{include}} ../../{page.relative_to(HERE.parent)}",
            ":relative-images:",
            ":relative-docs: .",
            "```",
        ]
        # docs/choices.md links to these pages.
        if "choice" in "".join(parts) or parts == ("repaired",):
            lines = ["---", "orphan: true", "---", *lines]
        if not page.read_text("utf-8").startswith("# "):
            title = ": ".join(parts).replace("_", " ").capitalize()
            lines = [f"# {title}", "", *lines]
        stub = HERE / "results" / f"{'_'.join(parts)}.md"
        if stub.exists():
            raise ValueError(
                f"Expected one page in {page.parent}. Received two."
            )
        stub.write_text("\n".join([*lines, ""]))


def _link_to_pages(app, *arguments):
    # An event passes one or two names before the source, a list of one string.
    source = arguments[-1]
    text = COMMAND.sub(r"- command: `\1`", source[0])
    text = TO_NOTEBOOK.sub(r"{doc}`\1 </\2>`", text)
    source[0] = TO_RESULTS.sub(_link_to_stub, text)


def _link_to_stub(match: re.Match) -> str:
    name = match[1].replace("/", "_")
    return f"](/results/{name}.md)"


def _leave_out_of_menu(app, doctree):
    """The appendix of choices is linked, and in no table of contents."""
    if app.env.docname == "choices":
        app.env.metadata["choices"]["orphan"] = True


def setup(app):
    _include_results()
    app.connect("doctree-read", _leave_out_of_menu)
    for event in ("source-read", "include-read"):
        app.connect(event, _link_to_pages)

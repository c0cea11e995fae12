"""The documentation site: `make docs` builds it, any warning being an error."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import reprt  # noqa: E402  (found by the line above)

project = "reprt"
copyright = "the authors of reprt, Apache License 2.0"
version = release = reprt.__version__

extensions = [
    "myst_nb",
    "plain_docstrings",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
html_theme = "furo"
html_title = f"reprt {version}"
html_static_path: list[str] = []
default_role = "code"  # docstrings write `name`, as Markdown does

# Notebooks come with their outputs: `make notebooks` has executed them.
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {
    "members": True,
    # Keras' own, which every layer has.
    "exclude-members": "build, call, compute_mask, compute_output_shape, from_config, "
    "get_config, result, update_state",
}
napoleon_custom_sections = [("Call arguments", "params_style")]
napoleon_use_rtype = False

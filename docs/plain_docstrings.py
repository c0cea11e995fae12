"""Lets Sphinx read docstrings that are written to be read as they stand.

Indented lines are a formula or code, tables are Markdown's, and a bar is a bar. All of
it becomes what reStructuredText has for it.
"""

import inspect
import re
import sys

import keras

SECTION = re.compile(
    r"^(Args|Attributes|Call arguments|Raises|Returns|Yields):$"
)


def setup(app):
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", _process, priority=100)
    app.connect("autodoc-process-signature", _signature)
    return {"parallel_read_safe": True}


def _process(app, what, name, obj, options, lines):
    lines[:] = _tables(_literal(lines))
    if what == "attribute":
        # Napoleon takes what stands before a colon in the first line for a type. An
        # empty comment has no colon.
        lines[:0] = ["..", ""]
        default = default_of(name)
        if default is not None:
            lines += [f"Default: ``{default!r}``.", ""]


def default_of(name):
    """The default of a setting, by its full name; None if it has none."""
    module, owner, field = name.rsplit(".", 2)
    settings = getattr(sys.modules.get(module), owner, None)
    fields = getattr(settings, "model_fields", {})
    if field not in fields or fields[field].is_required():
        return None
    default = fields[field].get_default(call_default_factory=True)
    # The field's text says what an empty tuple means.
    if default == ():
        return None
    simple = (bool, int, float, str, tuple)
    return default if isinstance(default, simple) else None


def _signature(app, what, name, obj, options, signature, returns):
    """Returns a layer's own arguments, for Keras' `__new__` takes anything."""
    if what == "class" and issubclass(obj, keras.Layer):
        parameters = list(inspect.signature(obj.__init__).parameters.values())
        return str(inspect.Signature(parameters[1:])), returns
    return signature, returns


def _literal(lines):
    """Marks indented blocks as literal, but for those of a section such as Args."""
    output = []
    in_block = in_section = False
    for line in lines:
        is_indented = line.startswith("    ")
        if line.strip() and not is_indented:
            in_block = False
            in_section = bool(SECTION.match(line))
        elif is_indented and not in_block and not in_section:
            output += ["::", ""]
            in_block = True
        if not in_block and not line.lstrip().startswith(("|", ">>>")):
            line = line.replace("|", "\\|")
        output.append(line)
    return output


def _tables(lines):
    output, rows = [], []
    # The empty line ends a table that stands last.
    for line in [*lines, ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if rows:
            output += ["", ".. list-table::", "   :header-rows: 1", ""]
            # The second row is a rule.
            for header, *cells in (rows[0], *rows[2:]):
                output.append(f"   * - {header}")
                output += [f"     - {cell}" for cell in cells]
            output.append("")
            rows = []
        output.append(line)
    return output

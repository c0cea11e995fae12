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
    if default == ():
        return None  # what an empty one means, the field's text says
    simple = (bool, int, float, str, tuple)
    return default if isinstance(default, simple) else None


def _signature(app, what, name, obj, options, signature, returns):
    """Of a layer: Keras gives all of them a `__new__` that takes anything."""
    if what == "class" and issubclass(obj, keras.Layer):
        parameters = list(inspect.signature(obj.__init__).parameters.values())
        return str(inspect.Signature(parameters[1:])), returns
    return signature, returns


def _literal(lines):
    """Marks indented blocks as literal, but for those of a section such as Args."""
    found, inside, in_section = [], False, False
    for line in lines:
        indented = line.startswith("    ")
        if line.strip() and not indented:
            inside, in_section = False, bool(SECTION.match(line))
        elif indented and not inside and not in_section:
            found += ["::", ""]
            inside = True
        verbatim = inside or line.lstrip().startswith(("|", ">>>"))
        found.append(line if verbatim else line.replace("|", "\\|"))
    return found


def _tables(lines):
    found, rows = [], []
    for line in [*lines, ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if rows:
            found += ["", ".. list-table::", "   :header-rows: 1", ""]
            # The second row is a rule.
            for header, *cells in (rows[0], *rows[2:]):
                found.append(f"   * - {header}")
                found += [f"     - {cell}" for cell in cells]
            found.append("")
            rows = []
        found.append(line)
    return found

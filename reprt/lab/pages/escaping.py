"""Words that others chose, such as sentences and folders' names, as formats need them.

CSV and JSON have writers of their own, and pictures take all text for plain text.
"""

import html
import re

# What Markdown reads otherwise: anywhere, about words, and where a line begins. A bar
# is markup only within a table, whose writer escapes it.
MARKUP = re.compile(r"[\\`*\[\]$~]|(?<![^\W_])_|_(?![^\W_])|^[#+=-]|(?<=^\d)[.)]")
# What LaTeX reads otherwise, or does not have.
LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "_&%#${}"},
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "[": "{[}",  # at the beginning of a line it would belong to the line before
        "±": r"$\pm$",
        "−": "$-$",
        "–": "--",
    }
)


def in_markdown(text: str) -> str:
    r"""Returns a text as Markdown and HTML show it.

    Example:

    >>> print(in_markdown("<b>pt_to_en</b>"))
    &lt;b&gt;pt_to_en&lt;/b&gt;
    """
    return MARKUP.sub(r"\\\g<0>", html.escape(_in_one_line(text), quote=False))


def code(text: str) -> str:
    """Returns a text as Markdown's code.

    Example:

    >>> print(code("a"), code("a `b`"))
    `a` `` a `b` ``
    """
    text = _in_one_line(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    edge = " " if "`" in (text[:1], text[-1:]) else ""
    return f"{fence}{edge}{text}{edge}{fence}"


def in_latex(text: str) -> str:
    r"""Returns a text as LaTeX prints it.

    Example:

    >>> print(in_latex(" az_to_en, 5 % "))
    az\_to\_en, 5 \%
    """
    return _in_one_line(text).strip().translate(LATEX)


def _in_one_line(text):
    return " ".join(text.splitlines())

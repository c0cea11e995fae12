"""Makes the site's tables and pictures fit the screen of a reader, a phone's too.

A table that is too wide for a phone becomes a list there: each cell has a line, which
begins with the head of its column. Every picture is a link to its file, so that a
reader can enlarge it.
"""

import re

from bs4 import BeautifulSoup

# How many characters of a table's row a phone shows side by side.
PHONE = 34
# How many characters a page of the usual width shows.
PAGE = 70
# These signs stay with both of their numbers.
SPACED = re.compile(r" (±|×) ")


def setup(app):
    app.connect("html-page-context", _lay_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _lay_out(app, page, template, context, doctree):
    # The index and the search have no text of ours.
    if doctree is None:
        return
    body = BeautifulSoup(context["body"], "html.parser")
    for table in body.find_all("table"):
        lay_out_table(table)
    for picture in body.find_all("img"):
        if picture.find_parent("a") is None:
            link = {"href": picture["src"], "class": "picture"}
            picture.wrap(body.new_tag("a", attrs=link))
    context["body"] = str(body)


def lay_out_table(table):
    for text in table.find_all(string=SPACED):
        text.replace_with(
            SPACED.sub("\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", text)
        )
    head = [cell.get_text(" ", strip=True) for cell in table.select("thead th")]
    widths = [_longest_word(name) for name in head]
    for row in table.select("tbody tr"):
        for column, cell in enumerate(row.find_all("td")[: len(head)]):
            if cell.get_text(strip=True):
                cell["data-head"] = head[column]
            longest = _longest_word(cell.get_text())
            widths[column] = max(widths[column], longest)
    width = sum(widths) + 2 * len(head)
    if width > PHONE:
        table["class"] = [*table.get("class", []), "list-on-phones"]
    if width > PAGE:
        table["class"] = [*table.get("class", []), "wide"]


def _longest_word(text):
    return max(len(word) for word in re.split("[ \n]", text))

"""Makes the site's tables and pictures fit the screen of a reader, a phone's too.

A table that is too wide for a phone becomes a list there: each cell has a line, which
begins with the head of its column. Every picture is a link to its file, so that a
reader can enlarge it.
"""

import re

from bs4 import BeautifulSoup

PHONE = 34  # characters of a table's row that a phone shows side by side
PAGE = 70  # the same of the usual width of a page
SPACED = re.compile(r" (±|×) ")  # signs that stay with both of their numbers


def setup(app):
    app.connect("html-page-context", _lay_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _lay_out(app, page, template, context, doctree):
    if doctree is None:  # the index and the search have no text of ours
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
    rows = [row.find_all("td") for row in table.select("tbody tr")]
    for row in rows:
        for name, cell in zip(head, row):
            if cell.get_text(strip=True):
                cell["data-head"] = name
    columns = zip(head, *([cell.get_text() for cell in row] for row in rows))
    width = sum(map(_longest_word, columns)) + 2 * len(head)
    if width > PHONE:
        table["class"] = [*table.get("class", []), "list-on-phones"]
    if width > PAGE:
        table["class"] = [*table.get("class", []), "wide"]


def _longest_word(cells):
    words = [word for cell in cells for word in re.split("[ \n]", cell)]
    return max(map(len, words), default=0)

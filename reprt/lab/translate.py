"""Sentences from the command line, a file or standard input, translated and printed."""

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reprt.data.corpora.lines import Lines, decoded
from reprt.decoding.attention_maps import draw, write_page
from reprt.decoding.translator import AHEAD, Translation, Translator


def translate(
    run: Path,
    sentences: Sequence[str],
    file: Path | None,
    n_best: int,
    as_json: bool,
    search: Mapping[str, Any],
):
    """Prints translations in order; remarks go to standard error.

    Without sentences, those of the file or of standard input are read.
    """
    typed = not (sentences or file) and sys.stdin.isatty()
    lines: Iterable[str]
    if sentences:
        lines = sentences
    elif file:
        lines = Lines.read(file)
    else:
        lines = decoded(sys.stdin.buffer, "standard input")
    translator = Translator.load(run, **search)
    # A user who types gets an answer to each line.
    found = translator.stream(lines, 1 if typed else AHEAD)
    for number, each in enumerate(found, 1):
        for note in () if as_json else each.notes:
            print(f"reprt: line {number}: {note}", file=sys.stderr)
        line = _json if as_json else _line
        print(line(number, each, n_best), flush=typed)


def draw_attention(
    run: Path, sentence: str, out: Path | None, search: Mapping[str, Any]
):
    """Draws what the heads attend to; prints the translation and the files."""
    maps = Translator.load(run, **search).attention(sentence)
    folder = out or run
    folder.mkdir(parents=True, exist_ok=True)
    picture, page = folder / "attention.png", folder / "attention.html"
    draw(maps, picture)
    write_page(maps, page)
    print(maps.translation, picture, page, sep="\n")


def _line(number: int, found: Translation, n_best: int) -> str:
    if n_best == 1:
        return found.text
    best = found.alternatives[:n_best]
    return "\n".join(f"{number}\t{each.score:.4f}\t{each.text}" for each in best)


def _json(number: int, found: Translation, n_best: int) -> str:
    best = [dataclasses.asdict(each) for each in found.alternatives[:n_best]]
    entry = {"source": found.source, "translation": found.text, "alternatives": best}
    return json.dumps(entry | {"notes": found.notes}, ensure_ascii=False)

"""Sentences from the command line, a file or standard input, translated and printed."""

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reprt.data.corpora.lines import decoded, read_lines
from reprt.decoding.attention_maps import draw, draw_positions, write_page
from reprt.decoding.run_folder import read_config
from reprt.decoding.translator import AHEAD, Translation, Translator
from reprt.progress import printable


def translate(
    run: Path,
    sentences: Sequence[str],
    file: Path | None,
    n_best: int,
    as_json: bool,
    search: Mapping[str, Any],
):
    """Prints translations, by default of standard input's lines, in order."""
    to_a_terminal = sys.stdout is not None and sys.stdout.isatty()
    typed = not (sentences or file) and sys.stdin.isatty()
    lines: Iterable[str] = sentences
    if file:
        lines = read_lines(file)
    elif not sentences:
        lines = decoded(sys.stdin.buffer, "standard input")
    translator = translator_of(run, search)
    # A user who types gets an answer to each line.
    found = translator.stream(lines, 1 if typed else AHEAD)
    for number, each in enumerate(found, 1):
        for note in () if as_json else each.notes:
            print(printable(f"reprt: line {number}: {note}"), file=sys.stderr)
        if as_json:
            line = _json(number, each, n_best)
        else:
            line = _line(number, each, n_best)
        # Files and programs get every character as the model wrote it.
        print(printable(line) if to_a_terminal else line, flush=typed)


def translator_of(run: Path, search: Mapping[str, Any]) -> Translator:
    """Loads the model of a run, which must be one that translates."""
    if read_config(run)["text"]["side"] == "target":
        raise ValueError(
            f"Expected a model that translates. Received: {run}, a language model. "
            "`reprt.decoding.sample` goes on from the beginning of a sentence."
        )
    return Translator.load(run, **search)


def draw_attention(
    run: Path, sentence: str, out: Path | None, search: Mapping[str, Any]
):
    translator = translator_of(run, search)
    maps, folder = translator.attention(sentence), out or run
    files = [
        draw(maps, folder / "attention.png"),
        write_page(maps, folder / "attention.html"),
        draw_positions(translator.model, folder / "positions.png"),
    ]
    print(printable(maps.translation), *filter(None, files), sep="\n")


def _line(number: int, found: Translation, n_best: int) -> str:
    if n_best == 1:
        return found.text
    best = found.alternatives[:n_best] or [found]  # of an empty sentence
    return "\n".join(
        f"{number}\t{each.score:.4f}\t{each.text}" for each in best
    )


def _json(number: int, found: Translation, n_best: int) -> str:
    best = [dataclasses.asdict(each) for each in found.alternatives[:n_best]]
    entry = {
        "source": found.source,
        "translation": found.text,
        "alternatives": best,
    }
    return json.dumps(entry | {"notes": found.notes}, ensure_ascii=False)

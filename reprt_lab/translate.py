"""Sentences from the command line, a file or standard input, translated and printed."""

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reprt.data.corpora.lines import decode_lines, read_lines
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
    lines: Iterable[str] = sentences
    ahead = AHEAD
    if file:
        lines = read_lines(file)
    elif not sentences:
        lines = decode_lines(sys.stdin.buffer, "standard input")
        if sys.stdin.isatty():
            # A user who types gets an answer to each line.
            ahead = 1
    translator = translator_of(run, search)
    for number, translation in enumerate(translator.stream(lines, ahead), 1):
        if as_json:
            print(_json(translation, n_best), flush=ahead == 1)
        else:
            for note in translation.notes:
                remark = f"reprt: line {number}: {note}"
                print(printable(remark), file=sys.stderr)
            text = _text(number, translation, n_best)
            # Files and programs get every character as the model wrote it.
            print(printable(text) if to_a_terminal else text, flush=ahead == 1)


def translator_of(run: Path, search: Mapping[str, Any]) -> Translator:
    """Loads the model of a run, which must be one that translates."""
    if read_config(run)["text"]["side"] == "target":
        raise ValueError(
            f"Expected a model that translates. Received: {run}, a language model. "
            "`reprt.decoding.sample` goes on from the beginning of a sentence."
        )
    return Translator.load(run, **search)


def draw_attention(
    run: Path,
    sentence: str,
    out: Path | None,
    search: Mapping[str, Any],
):
    """Writes the page and the pictures of a translation, and prints their paths."""
    translator = translator_of(run, search)
    maps = translator.attention(sentence)
    print(printable(maps.translation))
    folder = out or run
    print(draw(maps, folder / "attention.png"))
    print(write_page(maps, folder / "attention.html"))
    positions = draw_positions(translator.model, folder / "positions.png")
    # Some models have no positions to draw.
    if positions:
        print(positions)


def _text(number: int, translation: Translation, n_best: int) -> str:
    if n_best == 1:
        return translation.text
    lines = []
    # An empty sentence has no alternatives.
    for alternative in translation.alternatives[:n_best] or [translation]:
        lines.append(f"{number}\t{alternative.score:.4f}\t{alternative.text}")
    return "\n".join(lines)


def _json(translation: Translation, n_best: int) -> str:
    alternatives = translation.alternatives[:n_best]
    entry = {
        "source": translation.source,
        "translation": translation.text,
        "alternatives": list(map(dataclasses.asdict, alternatives)),
        "notes": translation.notes,
    }
    return json.dumps(entry, ensure_ascii=False)

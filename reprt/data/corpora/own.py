"""A text of the user's own: two files, a sentence per line, or a table of pairs."""

import json
import re
import reprlib
import sys
from collections.abc import Sequence
from pathlib import Path

from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.corpora.lines import read_lines
from reprt.data.corpora.ted import find_pair
from reprt.loading import load_extra

TABLES = ".tsv", ".csv", ".jsonl", ".parquet"
# A cell with quotes as .csv has them, around it and doubled within it.
_QUOTED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')


def is_table(path: str) -> bool:
    """Whether it is the name of a table that `load` reads."""
    return Path(path).suffix.lower() in TABLES


def load(
    pair: str,
    train: Sequence[str],
    dev: Sequence[str] = (),
    test: Sequence[str] = (),
    columns: Sequence[str] = (),
    held_out: float = 0.05,
) -> Corpus:
    """Reads a parallel text.

    Args:
        pair: its languages, such as `"de_to_en"`.
        train: two files, of which line i of one translates line i of the other; or one
            table, `.tsv`, `.csv`, `.jsonl` or `.parquet`.
        dev, test: the same; where there is none, `held_out` of `train`.
        columns: of tables, the source's and the target's; by default the languages.
        held_out: that share, as `Split.dealt` chooses it.
    """
    find_pair(pair)
    columns = columns or pair.split("_to_")
    if len(columns) != 2 or columns[0] == columns[1]:
        raise ValueError(
            "Expected two 'columns', the source's and the target's. Received: "
            f"{', '.join(columns)}."
        )
    given = {"train": train, "dev": dev, "test": test}
    splits = {name: _read(paths, columns) for name, paths in given.items() if paths}
    missing = [name for name in given if name not in splits]
    if missing:
        whole = splits["train"]
        splits |= zip([*missing, "train"], whole.dealt(held_out, len(missing)))
        if empty := [name for name, split in splits.items() if not len(split)]:
            raise ValueError(
                f"Expected enough pairs in {' and '.join(train)} for "
                f"{', '.join(missing)}, {held_out:.2%} each. Received: {len(whole)}, "
                f"none of which falls to {empty[0]}. Add files by --dev and --test."
            )
    origin = " and ".join(str(Path(path).absolute()) for path in train)
    name = f"{pair} from {Path(train[0]).name}"
    return Corpus(name, pair, False, origin, **splits)


def _read(paths: Sequence[str], columns: Sequence[str]) -> Split:
    where = " and ".join(map(str, paths))
    tables = [*map(is_table, paths)]
    if tables == [False, False]:
        first, second = map(read_lines, map(Path, paths))
        return Split.of(first, second, where)
    if tables != [True]:
        raise ValueError(
            f"Expected two files, one sentence per line, or a table whose name ends "
            f"with {', '.join(TABLES)}. Received: {where}."
        )
    pandas = load_extra("pandas", "Tables need pandas: pip install '.[train]'.")
    path, as_text = Path(paths[0]), {"dtype": str, "keep_default_na": False}
    kind = path.suffix.lower()
    try:
        match kind:
            case ".tsv":  # quotes and lone CRs belong to the sentences
                as_text |= {"quoting": 3, "lineterminator": "\n"}
                table = pandas.read_csv(path, sep="\t", **as_text)
                table = table.rename(columns=lambda name: name.removesuffix("\r"))
            case ".csv":
                table = pandas.read_csv(path, **as_text)
            case ".jsonl":
                table = pandas.DataFrame(_objects(read_lines(path)), dtype=object)
            case ".parquet":
                table = pandas.read_parquet(path)
    except ValueError as error:  # of pandas or pyarrow, which name no file
        reason = str(error).strip()
        raise ValueError(f"{path} cannot be read as a table: {reason}") from error
    # Pandas takes the cells before those of the head for an index.
    if kind in TABLES[:2] and not isinstance(table.index, pandas.RangeIndex):
        raise ValueError(
            f"Expected rows of {path} with as many cells as its head, "
            f"{len(table.columns)}. Received more. In .csv, quote commas of sentences."
        )
    if missing := [each for each in columns if each not in table.columns]:
        raise ValueError(
            f"Expected {path} to have the columns {' and '.join(columns)}. Received: "
            f"{', '.join(map(str, table.columns))}, without {missing[0]}. Name them by "
            '--set \'text.columns=["SOURCE","TARGET"]\', in Python by columns=, or the '
            "languages by --pair."
        )
    for cell in (cell for each in columns for cell in table[each]):
        if isinstance(cell, bytes) or pandas.api.types.is_list_like(cell):
            raise ValueError(
                f"Expected sentences in {path}. Received: {reprlib.repr(cell)}."
            )
    source, target = (
        [str(cell).removesuffix("\r") for cell in table[each].astype(object).fillna("")]
        for each in columns
    )
    both = [*source, *target]
    if kind == ".tsv" and (quoted := [*filter(_QUOTED.fullmatch, both)]):
        raise ValueError(
            f"Expected {path} to have no quotes around cells. Received: "
            f"{reprlib.repr(quoted[0])}. Call the file .csv, with commas between cells."
        )
    if kind == ".csv" and (broken := sum("\n" in cell for cell in both)):
        note = f"{broken:,} cells go over several lines. Are their quotes doubled?"
        print(f"{path}: {note}", file=sys.stderr, flush=True)
    return Split.of(source, target, where)


def _objects(lines):
    """Yields what the lines of a .jsonl hold."""
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                yield json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error

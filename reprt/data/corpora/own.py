"""A text of the user's own: two files, a sentence per line, or a table of pairs."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from reprt.data.corpora.corpus import (
    SPLITS,
    Corpus,
    Split,
    deal,
    drop_empty_pairs,
)
from reprt.data.corpora.languages import check_direction
from reprt.data.corpora.lines import lines
from reprt.data.corpora.store import folder_of, store_once
from reprt.data.corpora.tables import TABLES, Quoting, is_table, read_table
from reprt.data.corpora.ted import find_pair
from reprt.progress import byte_line

# The share of the pairs that a split without a file gets.
HELD_OUT = 0.05
# Endings of files whose bytes are not those of the sentences.
COMPRESSED = (".gz", ".parquet")


def load(
    pair: str,
    train: Sequence[str],
    dev: Sequence[str] = (),
    test: Sequence[str] = (),
    columns: Sequence[str] = (),
    held_out: float = HELD_OUT,
    quoting: Quoting | None = None,
) -> Corpus:
    """Reads a parallel text.

    Args:
        pair: its languages, such as `"de_to_en"`.
        train: two files, of which line i of one translates line i of the other; or one
            table, `.tsv`, `.csv`, `.jsonl` or `.parquet`.
        dev, test: the same; where there is none, `held_out` of `train`.
        columns: of tables, the source's and the target's; by default the languages.
        held_out: that share, as `deal` chooses it.
        quoting: of `.tsv` and `.csv`, as `read_table` has it.
    """
    find_pair(pair)
    files = {"train": train, "dev": dev, "test": test}
    missing, absolute_paths = [], []
    for name, paths in files.items():
        _check_kinds(paths)
        check_direction(paths, pair)
        absolute_paths.append([str(Path(path).absolute()) for path in paths])
        if not paths:
            missing.append(name)
    columns = columns or pair.split("_to_")
    if len(columns) != 2 or columns[0] == columns[1]:
        raise ValueError(
            "Expected two 'columns', the source's and the target's. Received: "
            f"{', '.join(columns)}."
        )

    def read():
        for name, paths in files.items():
            if not paths:
                continue
            pairs = _show_progress(paths, _pairs(paths, columns, quoting))
            if name == "train" and missing:
                yield from deal(pairs, held_out, [*missing, "train"])
            else:
                for source, target in pairs:
                    yield name, source, target

    settings = tuple(columns), quoting, missing and held_out
    folder = folder_of((absolute_paths, settings))
    sides = store_once(folder, SPLITS, read, [*train, *dev, *test])
    splits = {name: Split(*sides[name]) for name in files}
    for name, split in splits.items():
        if not len(split):
            count = sum(len(splits[part]) for part in [*missing, "train"])
            raise ValueError(
                f"Expected enough pairs in {' and '.join(train)} for "
                f"{', '.join(missing)}, {held_out:.2%} each. Received: {count}, none "
                f"of which falls to {name}. Add files by --dev and --test."
            )
    origin = " and ".join(absolute_paths[0])
    name = f"{pair} from {Path(train[0]).name}"
    return Corpus(name, pair, False, origin, **splits)


def _check_kinds(paths: Sequence[str]):
    """Refuses what is neither two files nor one table."""
    tables = [*map(is_table, paths)]
    if tables not in ([], [True], [False, False]):
        raise ValueError(
            f"Expected two files, one sentence per line, or a table whose name ends "
            f"with {', '.join(TABLES)}. Received: {' and '.join(map(str, paths))}. "
            "Only a language model takes one file."
        )


def _show_progress(
    paths: Sequence[str],
    pairs: Iterable[tuple[str, str]],
) -> Iterator[tuple[str, str]]:
    """Passes pairs on, and shows when all of the files will have been read."""
    size = None
    if not any(Path(path).suffix.lower() in COMPRESSED for path in paths):
        size = sum(Path(path).stat().st_size for path in paths)
    with byte_line(f"reading {Path(paths[0]).name}", size) as line:
        for pair in pairs:
            yield pair
            line.update(sum(len(side.encode()) + 1 for side in pair))
        line.leave = False


def _pairs(
    paths: Sequence[str],
    columns: Sequence[str],
    quoting,
) -> Iterator[tuple[str, str]]:
    """Yields the pairs of two files or of a table that have words."""
    where = " and ".join(map(str, paths))
    if len(paths) == 2:
        sides = map(lines, map(Path, paths))
        return drop_empty_pairs(itertools.zip_longest(*sides), where)
    rows = read_table(Path(paths[0]), columns, quoting)
    return drop_empty_pairs((row[1:] for row in rows), where)

"""A text of the user's own: two files, a sentence per line, or a table of pairs."""

from collections.abc import Sequence
from pathlib import Path

from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.corpora.lines import read_lines
from reprt.data.corpora.tables import TABLES, Quoting, is_table, read_table
from reprt.data.corpora.ted import find_pair


def load(
    pair: str,
    train: Sequence[str],
    dev: Sequence[str] = (),
    test: Sequence[str] = (),
    columns: Sequence[str] = (),
    held_out: float = 0.05,
    quoting: Quoting | None = None,
) -> Corpus:
    """Reads a parallel text.

    Args:
        pair: its languages, such as `"de_to_en"`.
        train: two files, of which line i of one translates line i of the other; or one
            table, `.tsv`, `.csv`, `.jsonl` or `.parquet`.
        dev, test: the same; where there is none, `held_out` of `train`.
        columns: of tables, the source's and the target's; by default the languages.
        held_out: that share, as `Split.dealt` chooses it.
        quoting: of `.tsv` and `.csv`, as `read_table` has it.
    """
    find_pair(pair)
    columns = columns or pair.split("_to_")
    if len(columns) != 2 or columns[0] == columns[1]:
        raise ValueError(
            "Expected two 'columns', the source's and the target's. Received: "
            f"{', '.join(columns)}."
        )
    given = {"train": train, "dev": dev, "test": test}
    splits = {
        name: _read(paths, columns, quoting)
        for name, paths in given.items()
        if paths
    }
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


def _read(paths: Sequence[str], columns: Sequence[str], quoting) -> Split:
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
    rows = read_table(Path(paths[0]), columns, quoting)
    source = [row.source for row in rows]
    target = [row.target for row in rows]
    return Split.of(source, target, where)

"""The languages of a text of the user's own, by the names of its files or columns."""

import re
from collections.abc import Sequence
from pathlib import Path

from reprt.data.corpora.lines import decode_lines
from reprt.data.corpora.tables import DELIMITERS, is_table
from reprt.imports import load_pyarrow

_TAG = "[a-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*"
# Endings that may stand behind that of the language.
_BEHIND = {".gz", ".txt", ".train", ".dev", ".test"}
# Usual endings that look like tags.
_NO_LANGUAGES = {"src", "tgt", "trg", "ref", "txt"}


def pair_of(paths: Sequence[str], columns: Sequence[str] = ()) -> str:
    """Returns the pair of a text, such as `"de_to_en"`; one language is its own pair.

    Two files have it in the endings of their names, as `corpus.de` and `corpus.en`, and
    one file has one language. A table has it in the names of its two columns. If the
    languages cannot be told, that is a `ValueError`.

    Args:
        paths: the files.
        columns: of a table, the source's and the target's; by default all of them.

    >>> pair_of(["corpus.de.gz", "corpus.en.gz"])
    'de_to_en'
    >>> pair_of(["train_pt-BR.txt", "train_en.txt"])
    'pt-BR_to_en'
    """
    if is_table(paths[0]):
        names = list(columns) or column_names(Path(paths[0]))
        tags = [name if _is_tag(name) else "" for name in names]
        return _pair_of_tags(
            tags,
            expected="columns named by two languages, de and en",
            received=f"{paths[0]} with {', '.join(names)}",
        )
    tags = [_language(path) for path in paths]
    if len(paths) == 1:
        # BCP 47 has this tag for a language that is not known.
        language = tags[0] or "und"
        return f"{language}_to_{language}"
    return _pair_of_tags(
        tags,
        expected="names that end with languages, corpus.de and corpus.en",
        received=" and ".join(paths),
    )


def _pair_of_tags(tags: Sequence[str], expected: str, received: str) -> str:
    if len(tags) != 2 or not all(tags) or tags[0] == tags[1]:
        raise ValueError(
            f"Expected {expected}, or --pair de_to_en. Received: {received}."
        )
    return "_to_".join(tags)


def check_direction(paths: Sequence[str], pair: str):
    """Refuses two files whose names have the pair's languages in the other order."""
    languages = [_language(path) for path in paths]
    source, _, target = pair.partition("_to_")
    if source != target and languages == [target, source]:
        raise ValueError(
            f"Expected files in the order of {pair}. Received: {paths[0]} and "
            f"{paths[1]}. Swap them."
        )


def column_names(path: Path) -> list[str]:
    """Returns the names of a table's columns, as its beginning has them."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        # A folder of files has one schema, too.
        parquet = load_pyarrow("pyarrow.parquet")
        return parquet.ParquetDataset(path).schema.names
    with open(path, "rb") as file:
        text_lines = decode_lines(file, path)
        if ending == ".jsonl":
            # The reader of these skips empty lines.
            text_lines = filter(str.strip, text_lines)
        head = next(text_lines, "")
    if ending == ".jsonl":
        # What is no JSON is refused when all lines are read.
        return re.findall(r'"([\w-]+)"\s*:', head)
    for delimiter in DELIMITERS[ending]:
        names = [name.strip(' "') for name in head.split(delimiter)]
        if len(names) > 1:
            return names
    return [head]


def _is_tag(name: str) -> bool:
    return bool(re.fullmatch(_TAG, name)) and name not in _NO_LANGUAGES


def _language(path: str) -> str:
    """Returns the language in which the name of a file ends, or nothing."""
    name = Path(path)
    while name.suffix in _BEHIND:
        name = name.with_suffix("")
    ending = name.suffix.removeprefix(".")
    if not _is_tag(ending):
        part = re.search("(?:^|[-_])([a-z]{2,3}(?:-[A-Z]{2})?)$", name.name)
        ending = part[1] if part else ""
    return ending if _is_tag(ending) else ""

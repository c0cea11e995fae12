"""A text as one file: sentences, ids and vocabularies, for machines without TensorFlow.

Cutting sentences into WordPiece needs tensorflow-text. Where it is not installed, as on
many machines with a GPU and JAX, a file made elsewhere by `reprt prepare` takes the
place of the text.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from reprt.arrays import read_arrays
from reprt.constants import PAD_ID
from reprt.data.corpora import ted
from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.encoding import EncodedCorpus, EncodedSplit
from reprt.data.rows import Rows
from reprt.data.tokenizers.base import VocabularySettings
from reprt.data.tokenizers.registry import VOCABULARIES
from reprt.files import whole_file
from reprt.reading import parse_json
from reprt.schema import check_range, shown
from reprt.settings import as_table, member_settings

ENDING = ".npz"
FORMAT = "reprt prepared text 2"
OLDER = "reprt prepared text 1"  # of WordPiece, with its size alone
SPLITS, SIDES = ("train", "dev", "test"), ("source", "target")
LABEL = ("name", "pair", "official")
KINDS = {"u": "bytes", "i": "integers"}
LARGEST = 2**31 - 1


class About(TypedDict):
    """What a prepared file says of its text."""

    name: str
    pair: str
    official: bool
    vocabulary: NotRequired[dict]
    vocab_size: NotRequired[int]
    max_tokens: int


@dataclasses.dataclass(frozen=True)
class PreparedCorpus(Corpus):
    """A corpus that was read from a prepared file, ids and all.

    Attributes:
        ids: its ids and vocabularies.
        vocabulary, max_tokens: what they were made with.
    """

    ids: EncodedCorpus | None = None
    vocabulary: VocabularySettings | None = None
    max_tokens: int = 0

    def encoded(self, vocabulary: VocabularySettings, max_tokens: int) -> EncodedCorpus:
        """Returns the ids.

        Raises:
            ValueError: if they were made with other settings.
        """
        made, asked = (self.vocabulary, self.max_tokens), (vocabulary, max_tokens)
        if self.ids is None or made != asked:
            raise ValueError(
                f"{self.origin} was prepared with {made[0]} and max_tokens={made[1]}. "
                f"The recipe has {asked[0]} and max_tokens={asked[1]}; prepare the "
                "text again."
            )
        return dataclasses.replace(self.ids, corpus=self)


def check_ending(path: Path):
    """Checks the name of a file that is to be written.

    Raises:
        ValueError: if it does not end with `.npz`, or is a folder's.
    """
    if path.suffix != ENDING:
        raise ValueError(f"Expected a file name that ends with {ENDING}, got {path}.")
    if path.is_dir():
        raise ValueError(f"Expected a file to be written. {path} is a folder.")


def write_prepared(
    text: EncodedCorpus, vocabulary: VocabularySettings, max_tokens: int, path: Path
):
    """Writes an encoded text; a kill leaves the whole file or none.

    Args:
        text: the text.
        vocabulary, max_tokens: what it was encoded with.
        path: the file, whose name must end with `.npz`.

    Raises:
        ValueError: if it does not.
    """
    check_ending(path)
    corpus = text.corpus
    label = {name: getattr(corpus, name) for name in LABEL}
    label |= {"vocabulary": as_table(vocabulary), "max_tokens": max_tokens}
    arrays: dict[str, Any] = {
        "about": _from_lines([FORMAT, json.dumps(label)]),
        "source_vocabulary": _from_bytes(text.source_tokenizer.to_bytes()),
        "target_vocabulary": _from_bytes(text.target_tokenizer.to_bytes()),
        "test_words": _from_lines(text.test_words),
    }
    for split in SPLITS:
        for side in SIDES:
            rows = Rows.of(getattr(getattr(text, split), side))
            sentences = getattr(getattr(corpus, split), side)
            arrays[f"{split}_{side}_text"] = _from_lines(sentences)
            arrays[f"{split}_{side}_ids"] = rows.ids
            arrays[f"{split}_{side}_lengths"] = rows.lengths
    with whole_file(path) as file:
        np.savez_compressed(file, **arrays)


def read_prepared(path: Path) -> PreparedCorpus:
    """Reads what `write_prepared` wrote.

    Raises:
        ValueError: if the file is damaged or something else.
    """
    try:
        return _corpus(read_arrays(path), str(path))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} is not a text that `reprt prepare` made, or is damaged: {error}."
        ) from error


def _corpus(arrays: Mapping[str, np.ndarray], origin: str) -> PreparedCorpus:
    kind, *rest = _lines(arrays, "about")
    if kind not in (FORMAT, OLDER) or len(rest) != 1:
        raise ValueError(f"it begins with {shown(kind)}")
    about = parse_json(rest[0], About, "its label")
    vocabulary, longest = _vocabulary(about, kind), about["max_tokens"]
    check_range("its label", 1, LARGEST, max_tokens=longest)
    source, target = (
        vocabulary.tokenizer.from_bytes(
            _flat(arrays, f"{each}_vocabulary", "u").tobytes()
        )
        for each in SIDES
    )
    vocabulary.check(source, target, ted.any_pair(about["pair"]).name)
    fields: dict[str, Any] = {name: about[name] for name in LABEL}
    fields["origin"], ids = origin, {}
    for split in SPLITS:
        sentences = (_lines(arrays, f"{split}_{side}_text") for side in SIDES)
        fields[split] = Split(*sentences)
        count = len(fields[split])
        ids[split] = EncodedSplit(
            _rows(arrays, f"{split}_source", count, len(source), longest),
            _rows(arrays, f"{split}_target", count, len(target), longest + 1),
        )
    # An edited label does not make another text.
    official = ted.is_official(
        ted.any_pair(fields["pair"]), fields["train"], fields["dev"]
    )
    if official != fields["official"]:
        raise ValueError(
            f"its label has official = {fields['official']}, and its sentences "
            f"{'are' if official else 'are not'} those of the official split"
        )
    test_words = _lines(arrays, "test_words")
    if len(test_words) != len(fields["test"]):
        raise ValueError(
            f"expected {len(fields['test'])} lines of 'test_words', received "
            f"{len(test_words)}"
        )
    encoded = EncodedCorpus(
        corpus=Corpus(**fields),
        source_tokenizer=source,
        target_tokenizer=target,
        train=ids["train"],
        dev=ids["dev"],
        test=ids["test"],
        test_words=test_words,
    )
    return PreparedCorpus(
        **fields, ids=encoded, vocabulary=vocabulary, max_tokens=longest
    )


def _vocabulary(about: Mapping[str, Any], kind: str) -> VocabularySettings:
    name = "vocab_size" if kind == OLDER else "vocabulary"
    if name not in about:
        raise ValueError(f"Missing in its label: {name}.")
    table = {"size": about[name]} if kind == OLDER else about[name]
    return member_settings(VOCABULARIES, table, "its label")


def _lines(arrays: Mapping[str, np.ndarray], name: str) -> list[str]:
    """The lines that `_from_lines` put into an array."""
    data = _flat(arrays, name, "u")
    try:
        return data.tobytes().decode().split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"expected {name!r} to be UTF-8, received {error}") from error


def _rows(arrays, name, count, pieces, longest) -> Rows:
    """The ids of so many sentences, each with `[START]` at least."""
    ids, lengths = (_flat(arrays, f"{name}_{what}", "i") for what in ("ids", "lengths"))
    ranges = (("ids", ids, PAD_ID + 1, pieces - 1), ("lengths", lengths, 1, longest))
    for what, numbers, lowest, highest in ranges:
        if numbers.size and not lowest <= numbers.min() <= numbers.max() <= highest:
            raise ValueError(
                f"expected '{name}_{what}' to be from {lowest} to {highest}, received "
                f"{numbers.min()} to {numbers.max()}"
            )
    if (len(lengths), lengths.sum()) != (count, len(ids)):
        raise ValueError(
            f"expected '{name}_lengths' to be {count} that add up to {len(ids)}, "
            f"received {len(lengths)} that add up to {lengths.sum()}"
        )
    return Rows(ids, lengths)


def _flat(arrays, name, kind) -> np.ndarray:
    if name not in arrays:
        raise ValueError(f"it has no {name!r}")
    array = arrays[name]
    if array.ndim != 1 or array.dtype.kind != kind:
        raise ValueError(
            f"expected {name!r} to be a row of {KINDS[kind]}, received shape "
            f"{array.shape} of {array.dtype}"
        )
    return array


def _from_lines(lines: Sequence[str]) -> np.ndarray:
    return _from_bytes("\n".join(lines).encode())


def _from_bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "uint8")

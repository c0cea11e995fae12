"""A text as one file: sentences, ids and vocabularies, for machines without TensorFlow.

Learning vocabularies and cutting sentences into pieces needs tensorflow-text. Where it
is not installed, as on many machines with a GPU and JAX, a file made elsewhere by
`reprt prepare` takes the place of the text.
"""

import dataclasses
import json
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.encoding import EncodedCorpus, EncodedSplit
from reprt.data.rows import Rows
from reprt.data.tokenizers.wordpiece import WordPiece
from reprt.files import opened, whole_file

ENDING = ".npz"
FORMAT = "reprt prepared text 1"
SPLITS, SIDES = ("train", "dev", "test"), ("source", "target")
DAMAGE = (zipfile.BadZipFile, zlib.error)
LABEL = ("name", "pair", "official")


@dataclasses.dataclass(frozen=True)
class PreparedCorpus(Corpus):
    """A corpus that was read from a prepared file, ids and all.

    Attributes:
        ids: its ids and vocabularies.
        vocab_size, max_tokens: what they were made with.
    """

    ids: EncodedCorpus | None = None
    vocab_size: int = 0
    max_tokens: int = 0

    def encoded(self, vocab_size: int, max_tokens: int) -> EncodedCorpus:
        """Returns the ids.

        Raises:
            ValueError: if they were made with other settings.
        """
        made, asked = (self.vocab_size, self.max_tokens), (vocab_size, max_tokens)
        if self.ids is None or made != asked:
            raise ValueError(
                f"{self.origin} was prepared with vocab_size and max_tokens {made}. "
                f"The recipe has {asked}; prepare the text again."
            )
        return dataclasses.replace(self.ids, corpus=self)


def check_ending(path: Path):
    """Checks the name of a file that is to be written.

    Raises:
        ValueError: if it does not end with `.npz`.
    """
    if path.suffix != ENDING:
        raise ValueError(f"Expected a file name that ends with {ENDING}, got {path}.")


def write_prepared(text: EncodedCorpus, vocab_size: int, max_tokens: int, path: Path):
    """Writes an encoded text; a kill leaves the whole file or none.

    Args:
        text: the text.
        vocab_size, max_tokens: what it was encoded with.
        path: the file, whose name must end with `.npz`.

    Raises:
        ValueError: if it does not.
    """
    check_ending(path)
    corpus = text.corpus
    label = {name: getattr(corpus, name) for name in LABEL}
    arrays: dict[str, Any] = {
        "about": _from_lines(
            [
                FORMAT,
                json.dumps(
                    {**label, "vocab_size": vocab_size, "max_tokens": max_tokens}
                ),
            ]
        ),
        "source_vocabulary": _from_lines(text.source_tokenizer.vocabulary),
        "target_vocabulary": _from_lines(text.target_tokenizer.vocabulary),
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
        with opened(path) as file, np.load(file) as saved:
            kind, about = _to_lines(saved["about"])
            if kind != FORMAT:
                raise ValueError(f"it begins with {kind!r}")
            arrays = {name: saved[name] for name in saved.files}
        about = json.loads(about)
        fields: dict[str, Any] = {name: about[name] for name in LABEL}
        fields["origin"], ids = str(path), {}
        for split in SPLITS:
            of_split = [_to_lines(arrays[f"{split}_{side}_text"]) for side in SIDES]
            fields[split] = Split(*of_split)
            ids[split] = EncodedSplit(
                *(
                    Rows(
                        arrays[f"{split}_{side}_ids"],
                        arrays[f"{split}_{side}_lengths"],
                    )
                    for side in SIDES
                )
            )
        source, target = (
            WordPiece(_to_lines(arrays[f"{side}_vocabulary"])) for side in SIDES
        )
        encoded = EncodedCorpus(
            corpus=Corpus(**fields),
            source_tokenizer=source,
            target_tokenizer=target,
            train=ids["train"],
            dev=ids["dev"],
            test=ids["test"],
            test_words=_to_lines(arrays["test_words"]),
        )
        return PreparedCorpus(
            **fields,
            ids=encoded,
            vocab_size=about["vocab_size"],
            max_tokens=about["max_tokens"],
        )
    except (*DAMAGE, OSError, ValueError, KeyError, EOFError) as error:
        raise ValueError(
            f"{path} is not a text that `reprt prepare` made, or is damaged: {error}."
        ) from error


def _from_lines(lines: Sequence[str]) -> np.ndarray:
    return np.frombuffer("\n".join(lines).encode(), "uint8")


def _to_lines(data: np.ndarray) -> list[str]:
    return data.tobytes().decode().split("\n")

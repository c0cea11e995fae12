"""Vocabularies are learnt once for each text and settings."""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from reprt.data.tokenizers.base import Tokenizer

Kind = TypeVar("Kind", bound=Tokenizer)


def learnt_once(
    tokenizer: type[Kind],
    learn: Callable[[], Kind],
    asked: str,
    texts: Sequence[Sequence[str]],
    folder: Path,
    progress: Callable[[str], None],
) -> Kind:
    """Returns what `learn` returns, from a file if it was learnt before.

    A damaged file is made again.

    Args:
        tokenizer: its class.
        learn: called if there is no file.
        asked: all that decides the result besides the sentences.
        texts: the sentences that it is learnt on.
        folder: where the file is; its name is the sha256 of `asked` and the sentences.
        progress: called with what is being done.
    """
    name = digest_of(asked, itertools.chain(*texts))
    path = folder / f"{name}{tokenizer.ending}"
    if path.exists():
        try:
            return tokenizer.read(path)
        except ValueError as error:
            progress(f"{error} It is made again.")
    progress(f"learnt from {sum(map(len, texts)):,} sentences")
    learn().write(path)
    return tokenizer.read(path)


def digest_of(asked: str, sentences: Iterable[str]) -> str:
    """Returns the sha256 of what is asked for and of each sentence with its length."""
    sha = hashlib.sha256(f"{asked}\n".encode())
    for sentence in sentences:
        data = sentence.encode()
        sha.update(b"%d:%b" % (len(data), data))
    return sha.hexdigest()

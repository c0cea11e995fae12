"""Vocabularies are learnt once for each text and settings."""

import hashlib
import itertools
from collections.abc import Callable, Sequence
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

    Args:
        tokenizer: its class.
        learn: called if there is no file.
        asked: all that decides the result besides the sentences.
        texts: the sentences that it is learnt on.
        folder: where the file is; its name is the sha256 of `asked` and the sentences.
        progress: called with what is being done.
    """
    sha = hashlib.sha256(f"{asked}\n".encode())
    for sentence in itertools.chain(*texts):
        sha.update(sentence.encode() + b"\n")
    path = folder / f"{sha.hexdigest()}{tokenizer.ending}"
    if not path.exists():
        progress(f"learnt from {sum(map(len, texts)):,} sentences")
        learn().write(path)
    return tokenizer.read(path)

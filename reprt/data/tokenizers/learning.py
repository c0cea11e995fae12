"""Vocabularies are learnt once for each text and settings."""

import contextlib
import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from reprt.data.tokenizers.base import Tokenizer
from reprt.files import whole_file

Kind = TypeVar("Kind", bound=Tokenizer)
_SHA256_SIZE = 32


def learnt_once(
    tokenizer: type[Kind],
    learn: Callable[[], Kind],
    asked: str,
    texts: Sequence[Sequence[str]],
    folder: Path,
    progress: Callable[[str], None],
) -> Kind:
    """Returns what `learn` returns, from a file if it was learnt before.

    The file ends with the sha256 of what it holds, because a part of a vocabulary may
    be one, too. A damaged file is made again.

    Args:
        tokenizer: its class.
        learn: called if there is no file.
        asked: all that decides the result besides the sentences.
        texts: the sentences that it is learnt on.
        folder: where the file is; its name is the sha256 of `asked` and the sentences.
        progress: called with what is being done.
    """
    path = folder / f"{digest_of(asked, itertools.chain(*texts))}.learnt"
    with contextlib.suppress(FileNotFoundError):
        held = path.read_bytes()
        learnt = held[:-_SHA256_SIZE]
        if _sha256(learnt) == held[-_SHA256_SIZE:]:
            return tokenizer.from_bytes(learnt)
        progress(f"{path} does not have the sha256 that it ends with")
    progress(f"learnt from {sum(map(len, texts)):,} sentences")
    learnt = learn().to_bytes()
    with whole_file(path) as file:
        file.write(learnt + _sha256(learnt))
    return tokenizer.from_bytes(learnt)


def digest_of(asked: str, sentences: Iterable[str]) -> str:
    """Returns the sha256 of what is asked for and of each sentence with its length."""
    sha = hashlib.sha256(f"{asked}\n".encode())
    for sentence in sentences:
        data = sentence.encode()
        sha.update(b"%d:%b" % (len(data), data))
    return sha.hexdigest()


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()

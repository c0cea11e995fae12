"""The lines of texts: where they end, and the text of each."""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from reprt.files import not_utf8


def decode_lines(file: Iterable[bytes], name: object) -> Iterator[str]:
    """Yields lines without their breaks, LF or CR LF; names one that is not UTF-8."""
    for number, line in enumerate(file, 1):
        bare = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            text = bare.decode()
        except UnicodeDecodeError as error:
            raise not_utf8(name, bare[error.start], number) from None
        # Some editors put a byte order mark before a text.
        yield text.removeprefix("\ufeff") if number == 1 else text


def lines(path: Path) -> Iterator[str]:
    """Yields the lines of a file, as `decode_lines` does; `.gz` is decompressed."""
    open_file = gzip.open if path.suffix == ".gz" else open
    try:
        with open_file(path, "rb") as file:
            yield from decode_lines(file, path)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(
            f"Expected {path} to be a whole gzip file. Received: {error}."
        ) from error


def read_lines(path: Path) -> list[str]:
    """Returns the lines that `lines` yields."""
    return list(lines(path))

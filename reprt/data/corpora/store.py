"""Texts on disk: written once, as a stream, and mapped into memory from then on."""

# By hand: `datasets` does it for any table, with a hundred dependencies.

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from reprt.files import (
    cache,
    file_lock,
    read_json,
    remove_unfinished,
    whole_folder,
)
from reprt.imports import load_pyarrow

# It changes whenever the same files give another text, or another file.
VERSION = 1
SIDES = ("source", "target")
# This many pairs are a record batch, which is read at once.
BATCH = 10_000
MANIFEST = "manifest.json"


class Sentences(Sequence[str]):
    """One side of a split: a column of an Arrow file that is mapped into memory.

    Another process gets the file's name, and maps the same memory.

    Attributes:
        digest: the sha256 of the sentences, as `digest_of` takes it.
    """

    def __init__(self, path: Path, side: str, digest: str):
        self.digest = digest
        self._place = path, side, digest
        # The file is read on even if its name becomes another's.
        self._file = load_pyarrow().OSFile(str(path))
        memory = load_pyarrow().memory_map(str(path))
        table = load_pyarrow("pyarrow.ipc").open_file(memory).read_all()
        self._column = table.column(side)

    def __reduce__(self):
        return Sentences, self._place

    def __len__(self):
        return len(self._column)

    def __getitem__(self, index):
        # A range counts from the end, and fails, as a list does.
        index = range(len(self))[index]
        if not isinstance(index, range):
            return self._column[index].as_py()
        if index.step == 1:
            return self._column.slice(index.start, len(index)).to_pylist()
        return [self[row] for row in index]

    def __iter__(self):
        # What is looked at where it is mapped would count as this process's memory.
        reader = load_pyarrow("pyarrow.ipc").open_file(self._file)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            yield from batch.column(self._place[1]).to_pylist()

    def __eq__(self, other):
        return isinstance(other, Sentences) and self.digest == other.digest

    def __hash__(self):
        return hash(self.digest)


def digest_of(sentences: Sequence[str]) -> str:
    """Returns the sha256 of sentences, each with its length; a text on disk has it."""
    if isinstance(sentences, Sentences):
        return sentences.digest
    sha = hashlib.sha256()
    _add(sha, sentences)
    return sha.hexdigest()


def _add(sha, sentences: Iterable[str]):
    for sentence in sentences:
        data = sentence.encode()
        sha.update(b"%d:%b" % (len(data), data))


def folder_of(identity: object) -> Path:
    """Returns the folder of the text that a number of settings make of some files."""
    sha256 = hashlib.sha256(repr((VERSION, identity)).encode()).hexdigest()
    return cache() / "texts" / sha256[:16]


def store_once(
    folder: Path,
    splits: Sequence[str],
    read: Callable[[], Iterable[tuple[str, str, str]]],
    files: Iterable[str] = (),
) -> dict[str, tuple[Sentences, Sentences]]:
    """Returns the two sides of each split, from a folder of the cache.

    They are read unless they are there, and the files are as they were. A kill leaves
    all or nothing.

    Args:
        folder: the folder.
        splits: the names of the splits.
        read: yields pairs, each after the name of its split.
        files: the paths of what is read.
    """
    place = folder / "text"
    sizes = _sizes(files)
    if not _is_whole(place, sizes):
        with file_lock(folder / "lock"):
            remove_unfinished(folder)
            if not _is_whole(place, sizes):
                shutil.rmtree(place, ignore_errors=True)
                _write(place, splits, read(), sizes)
    sides = {}
    for name, digests in read_json(place / MANIFEST)["splits"].items():
        path = place / f"{name}.arrow"
        first, second = map(Sentences, [path] * 2, SIDES, digests)
        sides[name] = first, second
    return sides


def _write(
    place: Path,
    splits: Sequence[str],
    pairs: Iterable[tuple[str, str, str]],
    sizes: list,
):
    """Writes a file for each split, and what tells whether all are as they were."""
    with whole_folder(place) as folder:
        with contextlib.ExitStack() as stack:
            writers = {}
            for name in splits:
                writer = _Writer(folder / f"{name}.arrow")
                writers[name] = stack.enter_context(contextlib.closing(writer))
            for name, source, target in pairs:
                writers[name].add(source, target)
        digests = {}
        for name, writer in writers.items():
            digests[name] = [sha.hexdigest() for sha in writer.shas]
        manifest = {
            "files": sizes,
            "written": _written(folder),
            "splits": digests,
        }
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


class _Writer:
    """Writes the pairs of a split to an Arrow file, and takes each side's sha256."""

    def __init__(self, path: Path):
        arrow = load_pyarrow()
        self.shas = [hashlib.sha256() for _ in SIDES]
        self._schema = arrow.schema([(side, arrow.string()) for side in SIDES])
        self._file = load_pyarrow("pyarrow.ipc").new_file(
            str(path), self._schema
        )
        self._pairs: list[tuple[str, str]] = []

    def add(self, source: str, target: str):
        self._pairs.append((source, target))
        if len(self._pairs) == BATCH:
            self._write()

    def close(self):
        if self._pairs:
            self._write()
        self._file.close()

    def _write(self):
        sides = list(map(list, zip(*self._pairs)))
        self._pairs.clear()
        for sha, sentences in zip(self.shas, sides):
            _add(sha, sentences)
        batch = load_pyarrow().record_batch(sides, schema=self._schema)
        self._file.write_batch(batch)


def _sizes(files: Iterable[str]) -> list[list[int]]:
    """Returns the size of each file, and when it was last changed."""
    sizes = []
    for path in map(Path, files):
        # A table may be a folder of files.
        parts = sorted(path.rglob("*")) if path.is_dir() else [path]
        for state in map(Path.stat, parts):
            sizes.append([state.st_size, state.st_mtime_ns])
    return sizes


def _is_whole(place: Path, sizes: list) -> bool:
    """Whether a text is there as it was written, and was made of the same files."""
    if not (place / MANIFEST).is_file():
        return False
    manifest = read_json(place / MANIFEST)
    return manifest["files"] == sizes and manifest["written"] == _written(place)


def _written(place: Path) -> list[int]:
    """Returns the sizes of the files of all splits."""
    return [path.stat().st_size for path in sorted(place.glob("*.arrow"))]

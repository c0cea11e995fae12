"""TED-HRLR (Qi et al., 2018): its fourteen pairs, and how its files are read."""

import dataclasses
import difflib
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from reprt.data.corpora.archive import plain_files, read_member
from reprt.data.corpora.corpus import SPLITS, Corpus, Split
from reprt.data.corpora.lines import decode_lines, read_lines
from reprt.files import read_text

NAME = "qi18naacl-dataset.tar.gz"
SIZE = 131_005_909
SHA256 = "216a86c3df4d4f522856fe9b920ff5be6b394d769cc88974ae8f9f5546953bbc"
ADDRESSES = (
    # The original address, and its copy in the Internet Archive: the former has not
    # answered since about February 2026.
    "http://www.phontron.com/data/qi18naacl-dataset.tar.gz",
    "https://web.archive.org/web/20240301220426if_/"
    "http://www.phontron.com/data/qi18naacl-dataset.tar.gz",
)
# A file beside `datasets` that says in what form the text is, if it was changed.
FORM = "FORM.txt"
# The tag of a language. Only OPUS writes "@".
_TAG = "[A-Za-z]{2,3}(?:[-_@][A-Za-z0-9]{1,8})*"
_TWO_LANGUAGES = re.compile(
    "([A-Za-z]{2,3})[-_. ]+(?:to[-_. ]+)?([A-Za-z]{2,3})"
)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A pair of languages, and what tells whether a text of it is the official one."""

    source: tuple[str, ...]
    target: str
    # Of the official splits, if there are any: the numbers of their sentence pairs, and
    # fingerprints of some target sentences, where such are known.
    train: int | None = None
    dev: int | None = None
    witnesses: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that TFDS gives to the pair."""
        return f"{''.join(self.source)}_to_{self.target}"

    @property
    def folder(self) -> str:
        """The name of the pair's folder in the official archive."""
        return f"{'_'.join(self.source)}_to_{self.target}"

    def files(self, split: str) -> tuple[str, str]:
        """Returns the names of the source and target file of a split."""
        # Of two languages of the source, only the training split has both.
        source = "-".join(self.source) if split == "train" else self.source[0]
        return f"{source}.{split}", f"{self.target}.{split}"


# These are what `_fingerprint` makes of sentences of the official text.
_AZ = (
    "6460d77b7a93ab36",
    "a635cdf5c6b9a69f",
    "e1ac5e3bc331c8e8",
    "a061d9028c8cc08b",
)
_PT = (
    "77e78dd43cda4fc7",
    "554ba0f6ba5ba4a9",
    "9e0472e4dfb648c4",
    "6bcc4a6203926e55",
)
# The counts are those of the paper's Table 1.
PAIRS = {
    pair.name: pair
    for pair in (
        Pair(("az",), "en", 5946, 671, _AZ),
        Pair(("az", "tr"), "en", 188396, 671),
        Pair(("be",), "en", 4509, 248),
        Pair(("be", "ru"), "en", 212614, 248),
        Pair(("es",), "pt", 44938, 1016),
        Pair(("fr",), "pt", 43873, 1131),
        Pair(("gl",), "en", 10017, 682),
        Pair(("gl", "pt"), "en", 61802, 682),
        Pair(("he",), "pt", 48511, 1145),
        Pair(("it",), "pt", 46259, 1162),
        Pair(("pt",), "en", 51785, 1193, _PT),
        Pair(("ru",), "en", 208106, 4805),
        Pair(("ru",), "pt", 47278, 1184),
        Pair(("tr",), "en", 182450, 4045),
    )
}


def find_pair(name: str, of_ted: bool = False) -> Pair:
    """Returns the pair of that name; with `of_ted` it must be one of TED-HRLR's.

    The name is of the form `SRC_to_TGT`, two tags of languages as BCP 47 or OPUS writes
    them: `"de_to_en"`, `"zh-CN_to_en"`, `"pt_br_to_en"`. Another is a `ValueError`.
    """
    if name in PAIRS:
        return PAIRS[name]
    tags = re.fullmatch(f"({_TAG})_to_({_TAG})", name)
    if tags and not of_ted:
        return Pair((tags[1],), tags[2])
    close = difflib.get_close_matches(name, PAIRS, n=1)
    if tags:
        expected = f"one of the pairs of TED-HRLR: {', '.join(PAIRS)}"
        advice = " Another pair needs a text of your own: --text FOLDER."
    else:
        expected = (
            "a pair of languages, SRC_to_TGT, such as pt_to_en or zh-CN_to_en"
        )
        advice = ""
        if languages := _TWO_LANGUAGES.fullmatch(name):
            close = ["_to_".join(languages.groups())]
    if close:
        advice = f" Did you mean {close[0]!r}?{advice}"
    raise ValueError(f"Expected {expected}. Received: {name!r}.{advice}")


def read(place: str | os.PathLike, pair: str) -> Corpus:
    """Reads a pair from a folder or tar archive laid out as the official archive.

    The `place` is the archive, the folder that holds `datasets/<source>_to_<target>/`,
    or `datasets` itself. A pair with an empty side is dropped, as TFDS does, and one
    with a side that has no words. The corpus is official, and named so, if the number
    of its sentence pairs and any known sentences say so. What is missing is a
    `FileNotFoundError`, any other fault a `ValueError`.
    """
    languages, root = find_pair(pair), Path(place)
    if root.is_file():
        return _read_archive(root, languages)
    if (root / "datasets").is_dir():
        root /= "datasets"
    names = [path.name for path in root.iterdir()]
    folder = root / _folder(languages, names, root)
    splits = _splits(languages, lambda name: read_lines(folder / name), folder)
    root = root.resolve()
    if root.name == "datasets":
        root = root.parent
    form = read_text(root / FORM).strip() if (root / FORM).exists() else ""
    return _label(languages, splits, folder, root.name, form)


def _read_archive(archive: Path, pair: Pair) -> Corpus:
    # The content of the pair's files; the names of other folders, for an error.
    folders: dict[str, dict[str, bytes]] = {}
    with plain_files(archive) as members:
        for entry, file in members:
            path = PurePosixPath(entry.name)
            files = folders.setdefault(path.parent.name, {})
            if path.parent.name in (pair.folder, pair.name):
                files[path.name] = read_member(archive, entry, file)
    files = folders[_folder(pair, folders, archive)]

    def read(name):
        return list(decode_lines(io.BytesIO(files[name]), archive / name))

    return _label(pair, _splits(pair, read, archive), archive, archive.name)


def _folder(pair: Pair, names: Iterable[str], text: Path) -> str:
    """Returns which of a text's folders is the pair's."""
    for name in (pair.folder, pair.name):
        if name in names:
            return name
    others = sorted(name for name in names if "_to_" in name)
    raise FileNotFoundError(
        f"Expected the folder datasets/{pair.folder} in {text}. "
        f"Pairs that are there: {', '.join(others) or 'none'}."
    )


def _splits(pair: Pair, read: Callable, place: Path) -> list[Split]:
    """Returns the splits of a pair, from a function that reads a file by its name."""
    splits = []
    for split in SPLITS:
        sides = {}
        for name in pair.files(split):
            try:
                sides[place / name] = read(name)
            except (FileNotFoundError, KeyError):
                raise FileNotFoundError(
                    f"{place / name} is missing. Each of {', '.join(SPLITS)} needs "
                    "two files, as datasets/pt_to_en/pt.train and en.train."
                ) from None
        where = " and ".join(map(str, sides))
        source, target = sides.values()
        splits.append(Split.of(source, target, where))
    return splits


def read_prepared(folder: str | os.PathLike, pair: str) -> Corpus:
    """Reads a pair that TFDS has prepared, in the order of its files."""
    import tensorflow_datasets as tfds

    languages = find_pair(pair)
    columns = "_".join(languages.source), languages.target
    builder = tfds.builder_from_directory(folder)
    splits = []
    for name in ("train", "validation", "test"):
        sides: tuple[list[str], list[str]] = [], []
        # By the batch, since one by one takes a minute for the largest pairs.
        for batch in (
            builder.as_dataset(split=name).batch(1024).as_numpy_iterator()
        ):
            for column, side in zip(columns, sides):
                side.extend(map(bytes.decode, batch[column]))
        splits.append(Split.of(*sides, f"{folder}, {name}"))
    return _label(languages, splits, folder, "TFDS")


def _label(pair, splits: list[Split], origin, origin_name, form="") -> Corpus:
    train, dev, test = splits
    official = (len(train), len(dev)) == (pair.train, pair.dev)
    if official and pair.witnesses:
        # Another text can be cut to the official counts, e.g. to compare models at the
        # same scale, and must not pass for the official one.
        fingerprints = set(map(_fingerprint, (*train.target, *dev.target)))
        official = fingerprints.issuperset(pair.witnesses)
    name = f"{pair.name} from {origin_name} (not the official TED-HRLR split)"
    if official:
        name = f"TED-HRLR {pair.name}{form and f', {form}'}"
    return Corpus(name, pair.name, official, str(origin), train, dev, test)


def _fingerprint(sentence: str) -> str:
    # Only letters, because copies differ in case and in how they are tokenised.
    letters = "".join(filter(str.isalnum, sentence.casefold()))
    return hashlib.sha256(letters.encode()).hexdigest()[:16]

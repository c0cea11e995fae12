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
from reprt.data.corpora.lines import decoded, read_lines
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


# Of sentences of the official text; `_fingerprint` makes them.
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
    found = re.fullmatch(f"({_TAG})_to_({_TAG})", name)
    if found and not of_ted:
        return Pair((found[1],), found[2])
    expected = (
        "a pair of languages, SRC_to_TGT, such as pt_to_en or zh-CN_to_en"
    )
    if found:
        expected = f"one of the pairs of TED-HRLR: {', '.join(PAIRS)}"
    near = difflib.get_close_matches(name, PAIRS, n=1)
    if not found and (languages := _TWO_LANGUAGES.fullmatch(name)):
        near = ["_to_".join(languages.groups())]
    raise ValueError(
        f"Expected {expected}. Received: {name!r}."
        + (f" Did you mean {near[0]!r}?" if near else "")
        + (
            " Another pair needs a text of your own: --text FOLDER."
            if found
            else ""
        )
    )


def read(place: str | os.PathLike, pair: str) -> Corpus:
    """Reads a pair from a folder or tar archive laid out as the official archive.

    The `place` is the archive, the folder that holds `datasets/<source>_to_<target>/`,
    or `datasets` itself. A pair with an empty side is dropped, as TFDS does, and one
    with a side that has no words. The corpus is official, and named so, if the number
    of its sentence pairs and any known sentences say so. What is missing is a
    `FileNotFoundError`, any other fault a `ValueError`.
    """
    known, root = find_pair(pair), Path(place)
    if root.is_file():
        found: dict[str, dict[str, bytes]] = {}
        with plain_files(root) as files:
            for entry, file in files:
                path = PurePosixPath(entry.name)
                inside = found.setdefault(path.parent.name, {})
                if path.parent.name in (known.folder, known.name):
                    inside[path.name] = read_member(root, entry, file)
        content = found[_folder(known, found, root)]
        lines = {
            n: decoded(io.BytesIO(data), root / n)
            for n, data in content.items()
        }
        splits = _splits(known, lambda name: list(lines[name]), root)
        return _label(known, splits, root, root.name)
    if (root / "datasets").is_dir():
        root /= "datasets"
    folder = root / _folder(known, [each.name for each in root.iterdir()], root)
    splits = _splits(known, lambda name: read_lines(folder / name), folder)
    root = root.resolve()
    if root.name == "datasets":
        root = root.parent
    form = read_text(root / FORM).strip() if (root / FORM).exists() else ""
    return _label(known, splits, folder, root.name, form)


def _folder(pair: Pair, there: Iterable[str], text: Path) -> str:
    """Returns which of a text's folders is the pair's."""
    for name in (pair.folder, pair.name):
        if name in there:
            return name
    others = sorted(name for name in there if "_to_" in name)
    raise FileNotFoundError(
        f"Expected the folder datasets/{pair.folder} in {text}. "
        f"Pairs that are there: {', '.join(others) or 'none'}."
    )


def _splits(pair: Pair, lines: Callable, place: Path) -> list[Split]:
    """Returns the splits of a pair, from a function that reads a file by its name."""
    splits = []
    for split in SPLITS:
        sides = {}
        for name in pair.files(split):
            try:
                sides[place / name] = lines(name)
            except (FileNotFoundError, KeyError):
                raise FileNotFoundError(
                    f"{place / name} is missing. Each of {', '.join(SPLITS)} needs "
                    "two files, as datasets/pt_to_en/pt.train and en.train."
                ) from None
        (source, here), (target, there) = sides.items()
        splits.append(Split.of(here, there, f"{source} and {target}"))
    return splits


def read_prepared(folder: str | os.PathLike, pair: str) -> Corpus:
    """Reads a pair that TFDS has prepared, in the order of its files."""
    import tensorflow_datasets as tfds

    known = find_pair(pair)
    builder = tfds.builder_from_directory(folder)
    languages, splits = ("_".join(known.source), known.target), []
    for name in ("train", "validation", "test"):
        sides: tuple[list[str], list[str]] = [], []
        # By the batch, since one by one takes a minute for the largest pairs.
        for batch in (
            builder.as_dataset(split=name).batch(1024).as_numpy_iterator()
        ):
            for language, side in zip(languages, sides):
                side.extend(sentence.decode() for sentence in batch[language])
        splits.append(Split.of(*sides, f"{folder}, {name}"))
    return _label(known, splits, folder, "TFDS")


def _label(pair, splits: list[Split], origin, found_in: str, form="") -> Corpus:
    train, dev, test = splits
    official = (len(train), len(dev)) == (pair.train, pair.dev)
    if official and pair.witnesses:
        # Another text can be cut to the official counts, e.g. to compare models at the
        # same scale, and must not pass for the official one.
        there = set(map(_fingerprint, (*train.target, *dev.target)))
        official = there.issuperset(pair.witnesses)
    name = f"{pair.name} from {found_in} (not the official TED-HRLR split)"
    if official:
        name = f"TED-HRLR {pair.name}{form and f', {form}'}"
    return Corpus(name, pair.name, official, str(origin), train, dev, test)


def _fingerprint(sentence: str) -> str:
    # Only letters, because copies differ in case and in how they are tokenised.
    letters = "".join(filter(str.isalnum, sentence.casefold()))
    return hashlib.sha256(letters.encode()).hexdigest()[:16]

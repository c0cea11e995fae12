"""TED-HRLR (Qi et al., 2018): its fourteen pairs, and how its files are read."""

import dataclasses
import difflib
import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

from reprt.data.corpora.archive import plain_files, tar_archive
from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.corpora.lines import Lines
from reprt.files import read_text, whole_file, whole_folder

Place = TypeVar("Place", Path, PurePosixPath)
SPLITS = ("train", "dev", "test")
# A file beside `datasets` that says in what form the text is, if it was changed.
FORM = "FORM.txt"
_LANGUAGE = "[A-Za-z]{2,3}"
_TAG = re.compile(rf"{_LANGUAGE}([-_@][A-Za-z0-9]{{1,8}})*")  # "@" in OPUS alone


@dataclasses.dataclass(frozen=True)
class Pair:
    """A pair of languages of TED-HRLR.

    Where the source is two languages, the training split mixes both while the others
    hold the first only.

    Args:
        source: the source language, or two of them, by ISO 639-1 code.
        target: the target language.
        train: how many sentence pairs the official training split has; None for a
            pair that is not of TED-HRLR.
        dev: how many the official validation split has.
        witnesses: fingerprints of sentences in the target sides of the official
            training and validation splits, for the pairs where some are known.

    Example:

    >>> pair = PAIRS["aztr_to_en"]
    >>> pair.folder, pair.files("train"), pair.files("dev")
    ('az_tr_to_en', ('az-tr.train', 'en.train'), ('az.dev', 'en.dev'))
    """

    source: tuple[str, ...]
    target: str
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
        source = "-".join(self.source) if split == "train" else self.source[0]
        return f"{source}.{split}", f"{self.target}.{split}"


# Of sentences of the official text; `_fingerprint` makes them.
_AZ = ("6460d77b7a93ab36", "a635cdf5c6b9a69f", "e1ac5e3bc331c8e8", "a061d9028c8cc08b")
_PT = ("77e78dd43cda4fc7", "554ba0f6ba5ba4a9", "9e0472e4dfb648c4", "6bcc4a6203926e55")
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


@dataclasses.dataclass(frozen=True)
class Archive:
    """The one file that holds all pairs, and where it is or was."""

    name: str
    size: int
    sha256: str
    addresses: tuple[str, ...]


ARCHIVE = Archive(
    name="qi18naacl-dataset.tar.gz",
    size=131_005_909,
    sha256="216a86c3df4d4f522856fe9b920ff5be6b394d769cc88974ae8f9f5546953bbc",
    addresses=(
        # The original address, and its copy in the Internet Archive: the former has
        # not answered since about February 2026.
        "http://www.phontron.com/data/qi18naacl-dataset.tar.gz",
        "https://web.archive.org/web/20240301220426if_/"
        "http://www.phontron.com/data/qi18naacl-dataset.tar.gz",
    ),
)


def find_pair(name: str) -> Pair:
    """Returns the pair of that name.

    Args:
        name: the name that TFDS gives to the pair, e.g. `"pt_to_en"`.

    Raises:
        ValueError: if there is no such pair.
    """
    if name in PAIRS:
        return PAIRS[name]
    near = difflib.get_close_matches(name, PAIRS, n=1, cutoff=0.0)[0]
    raise ValueError(
        f"Expected one of the pairs of TED-HRLR: {', '.join(PAIRS)}. "
        f"Received: {name!r}. Did you mean {near!r}? Another pair needs a text of your "
        "own: --text FOLDER."
    )


def any_pair(name: str) -> Pair:
    """Returns the pair of that name, even if TED-HRLR does not have it.

    Args:
        name: `SRC_to_TGT`, two tags of languages as BCP 47 or OPUS writes them:
            `"de_to_en"`, `"zh-CN_to_en"`, `"pt_br_to_en"`; or `"deda_to_en"` for a
            training text of two source languages.

    Raises:
        ValueError: if the name is not of that form.
    """
    if name in PAIRS:
        return PAIRS[name]
    if name in {pair.folder for pair in PAIRS.values()}:
        return find_pair(name)  # which says how TFDS writes it
    tags = name.split("_to_")
    if len(tags) == 2 and all(map(_TAG.fullmatch, tags)):
        return Pair((tags[0],), tags[1])
    if two := re.fullmatch("([a-z]{2})([a-z]{2})_to_([a-z]{2})", name):
        return Pair(two.groups()[:2], two[3])
    # As in "de-en", "de_en", "de2en", "de->en" or "de to en".
    between = r"[\W_2]+(?:to[\W_]+)?"
    found = re.fullmatch(f"({_LANGUAGE}){between}({_LANGUAGE})", name)
    near = f" Did you mean {'_to_'.join(found.groups())!r}?" if found else ""
    raise ValueError(
        "Expected a pair of languages, written SRC_to_TGT, such as pt_to_en or "
        f"zh-CN_to_en. Received: {name!r}.{near}"
    )


def read(folder: str | os.PathLike, pair: str) -> Corpus:
    """Reads a pair from files laid out as in the official archive.

    Line by line, the files of both sides make the sentence pairs. `pt.train.gz` is read
    where there is no `pt.train`. A pair with an empty side is dropped, as TFDS does. A
    pair is also dropped if a side has no words: nothing but spaces, or accents without
    letters.

    Args:
        folder: the folder that holds `datasets/<source>_to_<target>/`, or `datasets`
            itself, or the folder above. Two source languages may be written
            `az_tr_to_en`, as in the archive, or `aztr_to_en`, as in TFDS.
        pair: the name that TFDS gives to the pair, or would give to a new one.

    Returns:
        The corpus. It is official, and named so, only if it can be told from the
        number of its sentence pairs, and from known sentences if there are some.

    Raises:
        FileNotFoundError: if the folder, the pair or a file is missing.
        ValueError: if the pair is no name of one, is there more than once, or its
            files are not UTF-8, not aligned or without any sentence pair.

    Example:

    >>> read("qi18naacl-dataset", "pt_to_en").name  # doctest: +SKIP
    'TED-HRLR pt_to_en'
    """
    known = any_pair(pair)
    place = _locate(Path(folder), known)
    splits = [
        _read_split(*(place / name for name in known.files(split))) for split in SPLITS
    ]
    root = place.resolve().parent
    if root.name == "datasets":
        root = root.parent
    form = root / FORM
    return _label(
        known,
        splits,
        place,
        root.name,
        read_text(form).strip() if form.exists() else "",
    )


def read_archive(archive: Path, pair: str, folder: Path) -> Corpus:
    """Reads a pair from a tar archive laid out as the official one.

    Args:
        archive: the archive.
        pair: as for `read`.
        folder: where the pair's files are kept; what is there already is not copied.

    Raises:
        FileNotFoundError, ValueError: as `read` does, or if the archive is damaged.
    """
    place = place_in(folder, pair)
    if not place.is_dir():
        try:
            with tar_archive(archive) as tar, whole_folder(place) as into:
                _copy(plain_files(tar), any_pair(pair), archive, into, folder / FORM)
        except OSError:
            # Another process may have been faster; its folder is as good.
            if not place.is_dir():
                raise
    return read(folder, pair)


def place_in(folder: Path, pair: str) -> Path:
    """Returns the folder in `folder` for a pair's files from an archive."""
    return folder / "datasets" / any_pair(pair).folder


def _copy(members, pair: Pair, archive: Path, folder: Path, form: Path):
    """Copies the files that `read` looks for; their names are ours."""
    names = {name for split in SPLITS for name in pair.files(split)}
    names |= {f"{name}.gz" for name in names}
    there: set[PurePosixPath] = set()
    for entry, file in members:
        path = PurePosixPath(entry.name)
        there.add(path.parent)
        if path.name in names and path.parent.name in (pair.folder, pair.name):
            with open(folder / path.name, "wb") as copy:
                shutil.copyfileobj(file, copy)
        elif path.name == FORM:
            with whole_file(form) as copy:
                shutil.copyfileobj(file, copy)
    _the_only(list(there), pair, archive)


def read_prepared(folder: str | os.PathLike, pair: str) -> Corpus:
    """Reads a pair that TFDS has prepared.

    The sentence pairs are those that `read` finds in the files, in the order that TFDS
    stored them in.

    Args:
        folder: the folder of the version, `.../ted_hrlr_translate/<pair>/1.0.0`.
        pair: the name that TFDS gives to the pair.

    Returns:
        The corpus, labelled as by `read`.

    Raises:
        ImportError: if tensorflow_datasets is not installed.
        ValueError: if the pair is unknown or a split has no sentence pair.
    """
    import tensorflow_datasets as tfds

    known = find_pair(pair)
    builder = tfds.builder_from_directory(folder)
    sides = "_".join(known.source), known.target
    splits = []
    for name in ("train", "validation", "test"):
        sentences: tuple[list[str], list[str]] = [], []
        # By the batch, since one by one takes a minute for the largest pairs.
        for batch in builder.as_dataset(split=name).batch(1024).as_numpy_iterator():
            for language, side in zip(sides, sentences):
                side.extend(sentence.decode() for sentence in batch[language])
        splits.append(Split.of(*sentences, f"{folder}, {name}"))
    return _label(known, splits, Path(folder), "TFDS")


def _locate(folder: Path, pair: Pair) -> Path:
    """Returns the folder of the pair in `folder`."""
    if not folder.is_dir():
        raise FileNotFoundError(f"Expected a folder with TED-HRLR. Received: {folder}.")
    parents = [folder, folder / "datasets", *sorted(folder.glob("*/datasets"))]
    there = [place for parent in parents for place in parent.glob("*_to_*")]
    return _the_only(list(filter(Path.is_dir, there)), pair, folder)


def _the_only(there: Sequence[Place], pair: Pair, text: Path) -> Place:
    """Returns which of the folders in a text is the pair's."""
    found = [place for place in there if place.name in (pair.folder, pair.name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(
            f"Expected {pair.name} once in {text}. Received: "
            f"{', '.join(sorted(map(str, found)))}. Name the folder above the one to "
            "be read."
        )
    others = sorted({place.name for place in there if "_to_" in place.name})
    raise FileNotFoundError(
        f"Expected the folder datasets/{pair.folder} in {text}. "
        f"Pairs that are there: {', '.join(others) or 'none'}."
    )


def _read_split(source: Path, target: Path) -> Split:
    lines = _read_lines(source), _read_lines(target)
    if len(lines[0]) != len(lines[1]):
        raise ValueError(
            f"Both sides need the same number of lines. Received: {len(lines[0])} in "
            f"{source} and {len(lines[1])} in {target}. Line i of one translates line "
            "i of the other, so one of them has lost or gained a line."
        )
    return Split.of(*lines, f"{source} and {target}")


def _read_lines(path: Path) -> Lines:
    packed = path.with_name(f"{path.name}.gz")
    if packed.exists() and not path.exists():
        path = packed
    try:
        return Lines.read(path)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing. Each of {', '.join(SPLITS)} needs two files with a "
            "sentence a line, as in datasets/pt_to_en/pt.train and en.train."
        ) from None


def _label(pair, splits: list[Split], origin: Path, found_in, form="") -> Corpus:
    train, dev, test = splits
    official = is_official(pair, train, dev)
    name = (
        f"TED-HRLR {pair.name}{form and f', {form}'}"
        if official
        else f"{pair.name} from {found_in} (not the official TED-HRLR split)"
    )
    return Corpus(name, pair.name, official, str(origin), train, dev, test)


def is_official(pair: Pair, train: Split, dev: Split) -> bool:
    """Returns whether splits of a pair are the official ones, as far as can be told."""
    counts = len(train), len(dev)
    return counts == (pair.train, pair.dev) and _is_witnessed(pair, train, dev)


def _is_witnessed(pair: Pair, train: Split, dev: Split) -> bool:
    """Tells whether the known sentences are there.

    Another text can be cut to the official counts, e.g. to compare models at the same
    scale, and must not pass for the official one.
    """
    if not pair.witnesses:
        return True
    there = {_fingerprint(sentence) for sentence in (*train.target, *dev.target)}
    return there.issuperset(pair.witnesses)


def _fingerprint(sentence: str) -> str:
    # Letters alone, because copies differ in case and in how they are tokenised.
    letters = "".join(filter(str.isalnum, sentence.casefold()))
    return hashlib.sha256(letters.encode()).hexdigest()[:16]

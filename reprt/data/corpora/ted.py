"""TED-HRLR (Qi et al., 2018): its fourteen pairs, and how its files are read."""

import dataclasses
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from reprt.data.corpora.archive import open_archive
from reprt.data.corpora.corpus import SPLITS, Corpus, Split
from reprt.data.corpora.lines import decoded, read_lines
from reprt.files import read_text, read_toml

# A file beside `datasets` that says in what form the text is, if it was changed.
FORM = "FORM.txt"
# The tag of a language. Only OPUS writes "@".
_TAG = "[A-Za-z]{2,3}(?:[-_@][A-Za-z0-9]{1,8})*"


@dataclasses.dataclass(frozen=True)
class Pair:
    """A pair of languages, and what tells whether a text of it is the official one.

    Attributes:
        source, target: the languages; a few pairs have two of the source.
        train, dev: the numbers of sentence pairs of the official splits, if there are
            any.
        witnesses: fingerprints of some of their target sentences, if these are known.
    """

    source: Sequence[str]
    target: str
    train: int | None = None
    dev: int | None = None
    witnesses: Sequence[str] = ()

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

    @property
    def all_files(self) -> list[str]:
        """The names of the files of all splits."""
        return [*self.files("train"), *self.files("dev"), *self.files("test")]


_TED = read_toml(Path(__file__).with_suffix(".toml"))
NAME, SIZE, SHA256 = _TED["name"], _TED["size"], _TED["sha256"]
ADDRESS = _TED["address"]
PAIRS: dict[str, Pair] = {}
for row in _TED["pair"]:
    pair = Pair(**row)
    PAIRS[pair.name] = pair


def find_pair(name: str, of_ted: bool = False) -> Pair:
    """Returns the pair of that name; with `of_ted` it must be one of TED-HRLR's.

    The name is of the form `SRC_to_TGT`, two tags of languages as BCP 47 or OPUS writes
    them: `"de_to_en"`, `"zh-CN_to_en"`, `"pt_br_to_en"`. Another is a `ValueError`.
    """
    if name in PAIRS:
        return PAIRS[name]
    tags = re.fullmatch(f"({_TAG})_to_({_TAG})", name)
    if not tags:
        raise ValueError(
            "Expected a pair of languages, SRC_to_TGT, such as pt_to_en or zh-CN_to_en."
            f" Received: {name!r}."
        )
    if of_ted:
        raise ValueError(
            f"Expected one of the pairs of TED-HRLR: {', '.join(PAIRS)}. Received: "
            f"{name!r}. Another pair needs a text of your own: --text FOLDER."
        )
    return Pair((tags[1],), tags[2])


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
        splits = _splits(known, _archived(known, root), root)
        return _label(known, splits, root, root.name)
    if (root / "datasets").is_dir():
        root /= "datasets"
    folder = root / _folder(known, os.listdir(root), root)
    texts = {}
    for path in folder.iterdir():
        if path.name in known.all_files:
            texts[path.name] = read_lines(path)
    splits = _splits(known, texts, folder)
    root = root.resolve()
    if root.name == "datasets":
        root = root.parent
    form = read_text(root / FORM).strip() if (root / FORM).exists() else ""
    return _label(known, splits, folder, root.name, form)


def _folder(pair, names, text) -> str:
    """Returns which of a text's folders is the pair's."""
    for name in (pair.folder, pair.name):
        if name in names:
            return name
    pairs = sorted(name for name in names if "_to_" in name)
    raise FileNotFoundError(
        f"Expected the folder datasets/{pair.folder} in {text}. "
        f"Pairs that are there: {', '.join(pairs) or 'none'}."
    )


def _archived(pair, archive) -> dict[str, list[str]]:
    """Returns the lines of each file of a pair, by the file's name."""
    folders: dict[str, dict[str, list[str]]] = {}
    with open_archive(archive) as files:
        for name, _, content in files:
            path = PurePosixPath(name)
            texts = folders.setdefault(path.parent.name, {})
            if path.parent.name in (pair.folder, pair.name):
                texts[path.name] = list(decoded(content, archive / path.name))
    return folders[_folder(pair, folders, archive)]


def _splits(pair, texts, place) -> list[Split]:
    """Returns the splits of a pair, from the lines of each of its files."""
    for name in pair.all_files:
        if name not in texts:
            raise FileNotFoundError(
                f"{place / name} is missing. Each of {', '.join(SPLITS)} needs two "
                "files, as datasets/pt_to_en/pt.train and en.train."
            )
    splits = []
    for split in SPLITS:
        source, target = pair.files(split)
        where = f"{place / source} and {place / target}"
        splits.append(Split.of(texts[source], texts[target], where))
    return splits


def read_prepared(folder: str | os.PathLike, pair: str) -> Corpus:
    """Reads a pair that TFDS has prepared, in the order of its files."""
    import tensorflow_datasets as tfds

    known = find_pair(pair)
    builder = tfds.builder_from_directory(folder)
    splits = []
    for name in ("train", "validation", "test"):
        source: list[str] = []
        target: list[str] = []
        # By the batch, since one by one takes a minute for the largest pairs.
        dataset = builder.as_dataset(split=name).batch(1024)
        for batch in dataset.as_numpy_iterator():
            source.extend(map(bytes.decode, batch["_".join(known.source)]))
            target.extend(map(bytes.decode, batch[known.target]))
        splits.append(Split.of(source, target, f"{folder}, {name}"))
    return _label(known, splits, folder, "TFDS")


def _label(pair, splits, origin, folder, form="") -> Corpus:
    train, dev, test = splits
    official = (len(train), len(dev)) == (pair.train, pair.dev)
    if official and pair.witnesses:
        # Another text can be cut to the official counts, e.g. to compare models at the
        # same scale, and must not pass for the official one.
        fingerprints = set(map(_fingerprint, (*train.target, *dev.target)))
        official = fingerprints.issuperset(pair.witnesses)
    name = f"{pair.name} from {folder} (not the official TED-HRLR split)"
    if official:
        name = f"TED-HRLR {pair.name}{form and f', {form}'}"
    return Corpus(name, pair.name, official, str(origin), train, dev, test)


def _fingerprint(sentence: str) -> str:
    # Only letters, because copies differ in case and in how they are tokenised.
    letters = "".join(filter(str.isalnum, sentence.casefold()))
    return hashlib.sha256(letters.encode()).hexdigest()[:16]

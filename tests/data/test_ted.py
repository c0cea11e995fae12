import importlib.resources.abc
import sys
from collections import Counter

import pytest

from reprt.constants import RESERVED
from reprt.data.corpora import ted
from reprt.data.corpora.find import find
from reprt.data.tokenizers.wordpiece import WordPiece

# Line by line: an ordinary pair, empty on either side, blank, with several kinds of
# space and line break, and repeated.
SOURCE = "um .\n\nsó aqui .\n \nespaço\u2028raro\r\nmarca\x0c\x85 .\nrepete\nrepete\n"
TARGET = "one .\nonly here .\n\nblank\nodd\xa0space\nmark\nrepeats\nrepeats\n"
PAIRS_OF_SPLIT = [
    ("um .", "one ."),
    ("espaço\u2028raro", "odd\xa0space"),
    ("marca\x0c\x85 .", "mark"),
    ("repete", "repeats"),
    ("repete", "repeats"),
]


def write(folder, pair):
    """Writes the files of a pair; each split adds a pair of its own."""
    folder.mkdir(parents=True)
    for split in ted.SPLITS:
        source, target = ted.PAIRS[pair].files(split)
        (folder / source).write_bytes(f"o {split}\n{SOURCE}".encode())
        (folder / target).write_bytes(f"the {split}\n{TARGET}".encode())
    return folder


def pairs(split):
    return list(zip(split.source, split.target, strict=True))


@pytest.fixture
def ours(tmp_path):
    return write(tmp_path / "ours" / "datasets" / "gl_to_en", "gl_to_en")


@pytest.mark.parametrize("pair", ["pt_to_en", "aztr_to_en"])
def test_agrees_with_what_tfds_builds_which_is_found_too(
    tmp_path, monkeypatch, pair
):
    tfds = pytest.importorskip("tensorflow_datasets")
    configs = tfds.builder_cls("ted_hrlr_translate").BUILDER_CONFIGS
    assert list(ted.PAIRS) == [config.name for config in configs]
    write(tmp_path / "datasets" / ted.PAIRS[pair].folder, pair)
    monkeypatch.setattr(
        tfds.download.DownloadManager,
        "download_and_extract",
        lambda *_: tmp_path,
    )
    monkeypatch.setattr(tfds.core.utils.gcs_utils, "_is_gcs_disabled", True)
    # To build, not to read, TFDS needs the backport of this without requiring it.
    monkeypatch.setitem(sys.modules, "importlib_resources", importlib.resources)
    builder = tfds.builder(
        f"ted_hrlr_translate/{pair}", data_dir=tmp_path / "tfds"
    )
    builder.download_and_prepare()
    monkeypatch.delenv("REPRT_TED", raising=False)
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "tfds"))

    files, prepared = ted.read(tmp_path, pair), find("ted", pair)

    for split in ted.SPLITS:
        there = pairs(getattr(files, split))
        assert there == [(f"o {split}", f"the {split}"), *PAIRS_OF_SPLIT]
        assert Counter(there) == Counter(pairs(getattr(prepared, split)))
    assert prepared.origin == str(builder.data_dir)
    assert (
        prepared.name == f"{pair} from TFDS (not the official TED-HRLR split)"
    )
    assert not prepared.official


@pytest.mark.parametrize(
    "source, target",
    [
        ("zh-CN", "en"),
        ("pt_br", "en"),
        ("sr@latin", "es-419"),
        ("en", "to"),  # Tongan
    ],
)
def test_a_text_of_any_languages(tmp_path, source, target):
    name = f"{source}_to_{target}"
    place = tmp_path / "mine" / "datasets" / name
    place.mkdir(parents=True)
    for split in ted.SPLITS:
        (place / f"{source}.{split}").write_text("eins\nzwei\n")
        (place / f"{target}.{split}").write_text("one\ntwo\n")
    corpus = find(str(tmp_path / "mine"), name)
    assert pairs(corpus.test) == [("eins", "one"), ("zwei", "two")]
    assert corpus.pair == name and corpus.name.startswith(
        f"{name} from mine (not "
    )
    assert corpus.target_language == target


@pytest.mark.parametrize("at", [".", "datasets"])
@pytest.mark.parametrize("folder", ["az_tr_to_en", "aztr_to_en"])
def test_folders_that_are_accepted(tmp_path, at, folder):
    place = write(tmp_path / "my text" / "datasets" / folder, "aztr_to_en")
    corpus = ted.read(tmp_path / "my text" / at, "aztr_to_en")
    assert corpus.pair == "aztr_to_en" and corpus.origin == str(place)
    assert (
        corpus.name
        == "aztr_to_en from my text (not the official TED-HRLR split)"
    )


@pytest.mark.parametrize(
    "counts, known, form, name",
    [
        ((6, 6), [], None, "TED-HRLR gl_to_en"),
        ((6, 6), [], "tokenised\n", "TED-HRLR gl_to_en, tokenised"),
        ((7, 6), [], None, "not the official"),
        ((6, 7), [], None, "not the official"),
        # Counts do not suffice where sentences are known.
        ((6, 6), ["The train!", "the dev"], None, "TED-HRLR gl_to_en"),
        ((6, 6), ["the test"], None, "not the official"),
    ],
)
def test_what_is_called_official(ours, monkeypatch, counts, known, form, name):
    train, dev = counts
    pair = ted.Pair(
        ("gl",), "en", train, dev, tuple(map(ted._fingerprint, known))
    )
    monkeypatch.setitem(ted.PAIRS, "gl_to_en", pair)
    if form:
        (ours.parents[1] / "FORM.txt").write_text(form)
    corpus = ted.read(ours.parent, "gl_to_en")
    assert name in corpus.name and corpus.official == (
        name != "not the official"
    )
    assert "not the" in corpus.name or corpus.name == name


# Spaces, of no width as well, accents without letters, and fillers.
UNSEEN = [
    " ",
    "\xa0\u3000\u2028\t",
    "\u200b\ufeff\xad",
    "\u0301",
    "\u0301\u0327",
]
UNSEEN += [
    "\xb4 \u309b",
    "\u3164",
    "\ufe0f\u200d",
    "\0",
    "\u200e\u202e",
    "\uffa0",
]


@pytest.mark.parametrize("name", ["gl.test", "en.test"])
def test_a_side_without_a_word_is_empty(ours, name):
    words = [".", "é", "¡", "의", "ा", "👍", "5"]
    for each in ("gl.test", "en.test"):
        (ours / each).write_text(
            "\n".join([*"a" * len(UNSEEN), *words]), "utf-8"
        )
    (ours / name).write_bytes("\n".join([*UNSEEN, *words]).encode())
    assert pairs(ted.read(ours.parent, "gl_to_en").test) == list(
        zip(words, words)
    )
    # The tokenizer finds no word there either.
    of_spaces = [unseen.replace("\u2028", "") for unseen in UNSEEN]
    found = WordPiece([*RESERVED, "a"]).encode(of_spaces)
    assert {len(ids) for ids in found} == {2}  # the edges


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("en.dev", f"{TARGET}one\ntwo\n", "9 and 10 in .*gl.dev and .*en.dev"),
        ("gl.test", "\n" * 9, "none in .*gl.test and .*en.test"),
        ("gl.train", None, "gl.train is missing"),
        ("gl.test", None, "gl.test is missing"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(ours, name, content, message):
    (ours / name).unlink()
    if content:
        (ours / name).write_text(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        ted.read(ours.parent, "gl_to_en")

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
def pair_folder(tmp_path):
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

    corpus = ted.read(tmp_path, pair)
    prepared_corpus = find("ted", pair)

    for split in ted.SPLITS:
        pairs_of_split = pairs(getattr(corpus, split))
        assert pairs_of_split == [
            (f"o {split}", f"the {split}"),
            *PAIRS_OF_SPLIT,
        ]
        assert Counter(pairs_of_split) == Counter(
            pairs(getattr(prepared_corpus, split))
        )
    assert prepared_corpus.origin == str(builder.data_dir)
    assert (
        prepared_corpus.name
        == f"{pair} from TFDS (not the official TED-HRLR split)"
    )
    assert not prepared_corpus.official


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
    folder = tmp_path / "mine" / "datasets" / name
    folder.mkdir(parents=True)
    for split in ted.SPLITS:
        (folder / f"{source}.{split}").write_text("eins\nzwei\n")
        (folder / f"{target}.{split}").write_text("one\ntwo\n")
    corpus = find(str(tmp_path / "mine"), name)
    assert pairs(corpus.test) == [("eins", "one"), ("zwei", "two")]
    assert corpus.pair == name and corpus.name.startswith(
        f"{name} from mine (not "
    )
    assert corpus.target_language == target


@pytest.mark.parametrize("parent", [".", "datasets"])
@pytest.mark.parametrize("folder", ["az_tr_to_en", "aztr_to_en"])
def test_folders_that_are_accepted(tmp_path, parent, folder):
    path = write(tmp_path / "my text" / "datasets" / folder, "aztr_to_en")
    corpus = ted.read(tmp_path / "my text" / parent, "aztr_to_en")
    assert corpus.pair == "aztr_to_en" and corpus.origin == str(path)
    assert (
        corpus.name
        == "aztr_to_en from my text (not the official TED-HRLR split)"
    )


@pytest.mark.parametrize(
    "counts, sentences, form, name",
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
def test_what_is_called_official(
    pair_folder, monkeypatch, counts, sentences, form, name
):
    train, dev = counts
    pair = ted.Pair(
        ("gl",), "en", train, dev, tuple(map(ted._fingerprint, sentences))
    )
    monkeypatch.setitem(ted.PAIRS, "gl_to_en", pair)
    if form:
        (pair_folder.parents[1] / "FORM.txt").write_text(form)
    corpus = ted.read(pair_folder.parent, "gl_to_en")
    assert name in corpus.name and corpus.official == (
        name != "not the official"
    )
    assert "not the" in corpus.name or corpus.name == name


# Spaces, of no width as well, accents without letters, and fillers.
BLANKS = [
    " ",
    "\xa0\u3000\u2028\t",
    "\u200b\ufeff\xad",
    "\u0301",
    "\u0301\u0327",
]
BLANKS += [
    "\xb4 \u309b",
    "\u3164",
    "\ufe0f\u200d",
    "\0",
    "\u200e\u202e",
    "\uffa0",
]


@pytest.mark.parametrize("name", ["gl.test", "en.test"])
def test_a_side_without_a_word_is_empty(pair_folder, name):
    words = [".", "é", "¡", "의", "ा", "👍", "5"]
    for file in ("gl.test", "en.test"):
        (pair_folder / file).write_text(
            "\n".join([*"a" * len(BLANKS), *words]), "utf-8"
        )
    (pair_folder / name).write_bytes("\n".join([*BLANKS, *words]).encode())
    assert pairs(ted.read(pair_folder.parent, "gl_to_en").test) == list(
        zip(words, words)
    )
    # The tokenizer finds no word there either.
    lines = [blank.replace("\u2028", "") for blank in BLANKS]
    rows = WordPiece([*RESERVED, "a"]).encode(lines)
    assert {len(ids) for ids in rows} == {2}  # the edges


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("en.dev", f"{TARGET}one\ntwo\n", "9 and 10 in .*gl.dev and .*en.dev"),
        ("gl.test", "\n" * 9, "none in .*gl.test and .*en.test"),
        ("gl.train", None, "gl.train is missing"),
        ("gl.test", None, "gl.test is missing"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(pair_folder, name, content, message):
    (pair_folder / name).unlink()
    if content:
        (pair_folder / name).write_text(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        ted.read(pair_folder.parent, "gl_to_en")

import dataclasses
import gzip
import importlib.resources.abc
import sys
from collections import Counter

import pytest

from reprt.constants import RESERVED
from reprt.data.corpora import ted
from reprt.data.search import find
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
def test_agrees_with_what_tfds_builds_which_is_found_too(tmp_path, monkeypatch, pair):
    tfds = pytest.importorskip("tensorflow_datasets")
    write(tmp_path / "datasets" / ted.PAIRS[pair].folder, pair)
    monkeypatch.setattr(
        tfds.download.DownloadManager, "download_and_extract", lambda *_: tmp_path
    )
    monkeypatch.setattr(tfds.core.utils.gcs_utils, "_is_gcs_disabled", True)
    # To build, not to read, TFDS needs the backport of this without requiring it.
    monkeypatch.setitem(sys.modules, "importlib_resources", importlib.resources)
    builder = tfds.builder(f"ted_hrlr_translate/{pair}", data_dir=tmp_path / "tfds")
    builder.download_and_prepare()

    monkeypatch.delenv("REPRT_TED", raising=False)
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "tfds"))

    files = ted.read(tmp_path, pair)
    prepared = find("ted", pair)

    for split in ted.SPLITS:
        there = pairs(getattr(files, split))
        assert there == [(f"o {split}", f"the {split}"), *PAIRS_OF_SPLIT]
        assert Counter(there) == Counter(pairs(getattr(prepared, split)))
    assert prepared.origin == str(builder.data_dir)
    assert prepared.name == f"{pair} from TFDS (not the official TED-HRLR split)"
    assert not prepared.official


def test_the_pairs_are_those_of_tfds():
    tfds = pytest.importorskip("tensorflow_datasets")
    configs = tfds.builder_cls("ted_hrlr_translate").BUILDER_CONFIGS

    assert list(ted.PAIRS) == [config.name for config in configs]
    for config, pair in zip(configs, ted.PAIRS.values()):
        assert config.language_pair == ("_".join(pair.source), pair.target)


def test_files_of_two_source_languages():
    pair = ted.find_pair("aztr_to_en")

    assert pair.folder == "az_tr_to_en"
    assert pair.files("train") == ("az-tr.train", "en.train")
    assert pair.files("dev") == ("az.dev", "en.dev")
    assert pair.files("test") == ("az.test", "en.test")


@pytest.mark.parametrize("name", ["pt_en", "az_tr_to_en", "", "zz"])
def test_unknown_pair(name):
    with pytest.raises(ValueError, match=f"az_to_en, .*Received: '{name}'.*you mean"):
        ted.find_pair(name)


def test_unknown_pair_names_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'pt_to_en'\\? .* --text FOLDER"):
        ted.find_pair("pt-en")


@pytest.mark.parametrize(
    "source, target",
    [
        ("de", "en"),
        ("deu", "eng"),
        ("zh-CN", "en"),
        ("zh_CN", "en"),
        ("pt_br", "en"),
        ("en", "pt-BR"),
        ("zh-Hant-TW", "sr_Latn"),
        ("es-419", "de-CH-1996"),
        ("sr@latin", "cmn_Hans"),
        ("en", "to"),  # Tongan
        ("to", "en"),
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
    assert corpus.pair == name and corpus.name.startswith(f"{name} from mine (not ")


@pytest.mark.parametrize(
    "name, near",
    [
        ("de-en", "de_to_en"),
        ("de_en", "de_to_en"),
        ("deu2eng", "deu_to_eng"),
        ("de->en", "de_to_en"),
        ("de to en", "de_to_en"),
        ("de-to-en", "de_to_en"),
        ("pt-en", "pt_to_en"),
        ("zh-CN-en", None),
        ("german_to_english", None),
        ("de_to_en_to_fr", None),
        ("../de_to_en", None),
        ("de_to_", None),
        ("de", None),
    ],
)
def test_another_way_to_write_a_pair_is_told_the_right_one(tmp_path, name, near):
    for text in (str(tmp_path), "auto", "ted"):
        with pytest.raises(ValueError) as told:
            find(text, name)
        assert str(told.value) == (
            "Expected a pair of languages, written SRC_to_TGT, such as pt_to_en or "
            f"zh-CN_to_en. Received: {name!r}."
            + (f" Did you mean {near!r}?" if near else "")
        )


def test_a_folder_of_ted_is_told_the_name_of_its_pair(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'aztr_to_en'?"):
        find(str(tmp_path), "az_tr_to_en")


@pytest.mark.parametrize("at", [".", "datasets", ".."])
@pytest.mark.parametrize("folder", ["az_tr_to_en", "aztr_to_en"])
def test_folders_that_are_accepted(tmp_path, at, folder):
    place = write(tmp_path / "my text" / "datasets" / folder, "aztr_to_en")

    corpus = ted.read(tmp_path / "my text" / at, "aztr_to_en")

    assert corpus.pair == "aztr_to_en"
    assert corpus.name == "aztr_to_en from my text (not the official TED-HRLR split)"
    assert not corpus.official
    assert (tmp_path / "my text" / at / corpus.origin).samefile(place)


def _declare(monkeypatch, **changes):
    pair = dataclasses.replace(ted.PAIRS["gl_to_en"], **changes)
    monkeypatch.setitem(ted.PAIRS, "gl_to_en", pair)


def test_official_by_its_counts(ours, monkeypatch):
    _declare(monkeypatch, train=6, dev=6)

    corpus = ted.read(ours.parent, "gl_to_en")

    assert corpus.official
    assert corpus.name == "TED-HRLR gl_to_en"


@pytest.mark.parametrize("counts", [{"train": 7, "dev": 6}, {"train": 6, "dev": 7}])
def test_not_official_by_its_counts(ours, monkeypatch, counts):
    _declare(monkeypatch, **counts)

    assert not ted.read(ours.parent, "gl_to_en").official


@pytest.mark.parametrize(
    "known, official", [(["The train!", "the dev"], True), (["the test"], False)]
)
def test_counts_do_not_suffice_where_sentences_are_known(
    ours, monkeypatch, known, official
):
    witnesses = tuple(map(ted._fingerprint, known))
    _declare(monkeypatch, train=6, dev=6, witnesses=witnesses)

    corpus = ted.read(ours.parent, "gl_to_en")

    assert corpus.official == official
    assert ("not the official" in corpus.name) != official


def test_case_and_tokenisation_do_not_change_a_fingerprint():
    cased, official = "And (it) can't \"end\".", "and ( it ) ca n't \" end \" ."

    assert ted._fingerprint(cased) == ted._fingerprint(official)


def test_a_stray_break_and_a_last_line_without_one_misalign_nothing(ours):
    (ours / "gl.test").write_bytes("un\ndous\ntrês\u2028\x85\ncatro".encode())
    (ours / "en.test").write_bytes(b"one two\r\nthree\r\nfo\rur\r\nfive\r\n")
    assert pairs(ted.read(ours.parent, "gl_to_en").test) == [
        ("un", "one two"),
        ("dous", "three"),
        ("três\u2028\x85", "fo\rur"),
        ("catro", "five"),
    ]


@pytest.mark.parametrize("names", [["gl.train"], ["gl.train", "en.train", "en.dev"]])
def test_gzip_stands_in_for_a_file_that_is_not_there(ours, names):
    before = ted.read(ours.parent, "gl_to_en").digest()
    for name in names:
        (ours / f"{name}.gz").write_bytes(gzip.compress((ours / name).read_bytes()))
        (ours / name).unlink()
    (ours / "gl.test.gz").write_bytes(b"not read, as gl.test is there")
    assert ted.read(ours.parent, "gl_to_en").digest() == before


def test_misaligned(ours):
    with (ours / "en.dev").open("a") as file:
        file.write("one more\n")

    with pytest.raises(ValueError, match="9 in .*gl.dev and 10 in .*en.dev"):
        ted.read(ours.parent, "gl_to_en")


def test_no_sentence_pair(ours):
    (ours / "gl.test").write_text("só aqui\n\n")
    (ours / "en.test").write_text("\nonly here\n")

    with pytest.raises(ValueError, match="none in .*gl.test and .*en.test"):
        ted.read(ours.parent, "gl_to_en")


# Spaces, of no width as well, accents without letters, and fillers.
UNSEEN = [" ", "\xa0\u3000\u2028\t", "\u200b\ufeff\xad", "\u0301", "\u0301\u0327"]
UNSEEN += ["\xb4 \u309b", "\u3164", "\ufe0f\u200d", "\0", "\u200e\u202e", "\uffa0"]


@pytest.mark.parametrize("unseen", UNSEEN)
@pytest.mark.parametrize("name", ["gl.test", "en.test"])
def test_a_side_without_a_word_is_empty(ours, name, unseen):
    (ours / "gl.test").write_text("un\ndous\n", "utf-8")
    (ours / "en.test").write_text("one\ntwo\n", "utf-8")
    lines = (ours / name).read_text().split("\n")
    (ours / name).write_text("\n".join([unseen, *lines[1:]]), "utf-8")
    assert pairs(ted.read(ours.parent, "gl_to_en").test) == [("dous", "two")]
    (ours / name).write_text(f"{unseen}\n{unseen}\n", "utf-8")
    with pytest.raises(ValueError, match="none in .*gl.test and .*en.test"):
        ted.read(ours.parent, "gl_to_en")


def test_the_tokenizer_finds_no_word_there_either():
    tokenizer = WordPiece([*RESERVED, "a"])
    of_spaces = [unseen.replace("\u2028", "") for unseen in UNSEEN]
    assert {len(ids) for ids in tokenizer.encode(of_spaces)} == {2}  # the edges


@pytest.mark.parametrize("sentence", [".", "é", "¡", "의", "ा", "👍", "5"])
def test_a_sign_is_a_word(ours, sentence):
    for name in ("gl.test", "en.test"):
        (ours / name).write_text(f"{sentence}\n", "utf-8")
    assert pairs(ted.read(ours.parent, "gl_to_en").test) == [(sentence, sentence)]


def test_not_utf8(ours):
    (ours / "gl.train").write_bytes("um\ndois\ntrês\n".encode("latin-1"))

    with pytest.raises(ValueError, match="gl.train .*0xea in line 3"):
        ted.read(ours.parent, "gl_to_en")


@pytest.mark.parametrize("name", ["gl.train", "en.train", "en.dev", "gl.test"])
def test_missing_file(ours, name):
    (ours / name).unlink()

    with pytest.raises(FileNotFoundError, match=f"{name} is missing"):
        ted.read(ours.parent, "gl_to_en")


def test_missing_pair_tells_what_is_there(ours):
    with pytest.raises(
        FileNotFoundError, match="datasets/be_ru_to_en in .*are there: gl_to_en"
    ):
        ted.read(ours.parent.parent, "beru_to_en")


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="a folder .*Received: .*nowhere"):
        ted.read(tmp_path / "nowhere", "gl_to_en")


def test_two_texts_of_the_same_pair(ours, tmp_path):
    write(tmp_path / "theirs" / "datasets" / "gl_to_en", "gl_to_en")

    with pytest.raises(ValueError, match="gl_to_en once .*ours/.*theirs/"):
        ted.read(tmp_path, "gl_to_en")

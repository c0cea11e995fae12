"""Texts on disk: the same as in memory, read once, and whole or not at all."""

import dataclasses
import hashlib
import os
import pickle
import subprocess
import sys

import pytest
from tiny import VOCABULARY

from reprt.data.corpora import own, store
from reprt.data.corpora.corpus import Corpus, Split, deal
from reprt.data.corpora.store import Sentences
from reprt.data.encoding import encode
from reprt.data.tokenizers import bpe
from reprt.data.tokenizers.bpe import BPESettings
from reprt.data.tokenizers.wordpiece import WordPieceSettings

PAIRS = [(f"die Zahl {n} .", f"the number {n} .") for n in range(300)]
NAMES = ["dev", "test", "train"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch, tmp_path):
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "BATCH", 7)


@pytest.fixture
def files(tmp_path):
    for name, side in zip(("de", "en"), zip(*PAIRS)):
        (tmp_path / name).write_text("".join(f"{each}\n" for each in side))
    return [str(tmp_path / name) for name in ("de", "en")]


@pytest.fixture
def in_memory():
    dealt = list(deal(PAIRS, 0.1, NAMES))
    splits = {}
    for name in NAMES:
        pairs = [pair for where, *pair in dealt if where == name]
        splits[name] = Split(*map(list, zip(*pairs)))
    return Corpus("mine", "de_to_en", False, "memory", **splits)


def load(files):
    return own.load("de_to_en", files, held_out=0.1)


def sides(corpus):
    splits = corpus.train, corpus.dev, corpus.test
    return [side for split in splits for side in (split.source, split.target)]


def ids(text):
    return [
        [row.tolist() for row in rows]
        for split in (text.train, text.dev, text.test)
        for rows in (split.source, split.target)
    ]


def test_a_side_is_a_sequence(files):
    sentences = load(files).train.source
    there = list(sentences)
    assert len(sentences) == len(there) > 200
    assert [sentences[0], sentences[-1]] == [there[0], there[-1]]
    for part in (slice(5, 22), slice(-9, None), slice(None, None, 50)):
        assert sentences[part] == there[part]
    with pytest.raises(IndexError):
        sentences[len(there)]
    assert there[3] in sentences and "another" not in sentences


@pytest.mark.parametrize("vocabulary", [VOCABULARY, BPESettings(size=60)])
def test_a_text_on_disk_is_that_in_memory(
    files, in_memory, vocabulary, tmp_path
):
    corpus = load(files)
    assert [*map(list, sides(corpus))] == sides(in_memory)
    # As committed runs name it.
    text = b"".join(
        "\n".join(side).encode() + b"\0" for side in sides(in_memory)
    )
    sha256 = hashlib.sha256(text).hexdigest()
    assert corpus.digest() == in_memory.digest() == sha256
    assert corpus.facts == in_memory.facts
    texts = [
        encode(each, vocabulary, 9, tmp_path / each.origin[-6:])
        for each in (corpus, in_memory)
    ]
    (here, there), (first, second) = map(ids, texts), texts
    assert here == there and first.test_words == second.test_words
    assert (
        first.source_tokenizer.vocabulary == second.source_tokenizer.vocabulary
    )
    assert first.lost_words == second.lost_words


def test_a_second_start_reads_no_sentence(files, monkeypatch, tmp_path):
    first = encode(load(files), VOCABULARY, 9, tmp_path)
    facts = first.corpus.facts

    def refuse(*arguments):
        raise AssertionError("the text was read")

    monkeypatch.setattr(own, "lines", refuse)
    for name in ("__iter__", "__getitem__"):
        monkeypatch.setattr(Sentences, name, refuse)
    second = encode(load(files), VOCABULARY, 9, tmp_path)
    assert ids(second) == ids(first) and second.corpus.facts == facts
    assert second.lost_words == first.lost_words


@pytest.mark.parametrize("change", ["size", "time", "half a file"])
def test_what_has_changed_is_read_again(files, change, monkeypatch):
    before = load(files)
    path = before.train.source._place[0]
    if change == "size":
        for name in files:
            with open(name, "a") as file:
                file.write("one more\n")
    elif change == "time":
        os.utime(files[1], (0, 0))
    else:
        data = path.read_bytes()
        path.unlink()  # for its bytes are mapped
        path.write_bytes(data[:-9])
    read = []
    lines = own.lines
    monkeypatch.setattr(
        own, "lines", lambda path: read.append(path) or lines(path)
    )
    after = load(files)
    assert len(read) == 2
    assert (after.digest() == before.digest()) == (change != "size")
    folder = path.parents[1]
    assert [*folder.parent.glob("*/text")] == [folder / "text"]


def test_a_kill_leaves_no_half_of_a_text(files, monkeypatch, tmp_path):
    place = own._pairs

    def killed(*arguments):
        for number, pair in enumerate(place(*arguments)):
            if number == 100:
                raise KeyboardInterrupt
            yield pair

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(own, "_pairs", killed)
        load(files)
    [folder] = (tmp_path / "cache" / "texts").iterdir()
    assert [path.name for path in folder.iterdir()] == ["lock"]
    # A process that is killed cannot remove what it has written.
    (folder / ".reprt-0123456789ab").mkdir()
    assert len(load(files).train) > 200
    assert {path.name for path in folder.iterdir()} == {"lock", "text"}


def test_a_text_travels_to_machines_that_have_another_disk(files, tmp_path):
    corpus = load(files)
    near, far = map(pickle.dumps, (corpus, corpus.in_memory()))
    assert len(near) < 5000 < len(far)
    assert pickle.loads(near) == corpus
    there = sides(corpus)[0][:]
    for path in (tmp_path / "cache").rglob("*.arrow"):
        path.unlink()
    assert pickle.loads(far).train.source == there


def test_a_share_is_held_out_of_a_text_on_disk_as_of_one_in_memory(
    files, in_memory
):
    there = load(files).validated_on(0.3)
    here = in_memory.validated_on(0.3)
    assert isinstance(there.dev.source, Sentences)
    assert there.digest() == here.digest()
    assert dataclasses.replace(there, dev=there.test).digest() != here.digest()


def test_a_vocabulary_is_learnt_on_a_sample_of_a_long_text(
    files, tmp_path, monkeypatch
):
    corpus, learnt = load(files), []
    learn = bpe.learn_model

    def noted(sentences, *how):
        learnt.append(list(sentences))
        return learn(learnt[-1], *how)

    monkeypatch.setattr(bpe, "learn_model", noted)
    said = []
    vocabulary = BPESettings(size=60, sentences=20, shared=True)
    vocabulary.learn(corpus, tmp_path, said.append)
    # At equal distances, as many of each side.
    [sample] = learnt
    places = []
    for side, part in zip(sides(corpus), (sample[:20], sample[20:])):
        places.append([[*side].index(sentence) for sentence in part])
    step = len(corpus.train) / 20
    assert places[0] == places[1] and len(places[0]) == 20
    for before, after in zip(places[0], places[0][1:]):
        assert abs(after - before - step) < 1
    assert any("40/40 sentences, 0:00 left" in line for line in said)
    whole = WordPieceSettings(size=60)
    assert whole.sentences > len(corpus.train)
    assert list(whole._sample_evenly(corpus.train.source)) == [
        *corpus.train.source
    ]


def test_memory_does_not_grow_with_the_text(tmp_path):
    script = """
import resource, sys
from reprt.data.corpora import own
from reprt.imports import load_pyarrow
load_pyarrow("pyarrow.ipc")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
own.load("de_to_en", sys.argv[1:])
print(peak() - before)
"""
    files = []
    for language in ("de", "en"):
        path = tmp_path / language
        sentence = (
            f"a sentence of the language {language}, which is rather long"
        )
        with open(path, "w") as file:
            for number in range(200_000):
                file.write(f"{sentence} {number}\n")
        files.append(str(path))
    grown = subprocess.check_output([sys.executable, "-c", script, *files])
    # As lists the text would take 43 MiB.
    assert int(grown) < 20 * 1024

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
        (tmp_path / name).write_text("\n".join(side) + "\n")
    return [str(tmp_path / name) for name in ("de", "en")]


@pytest.fixture
def memory_corpus():
    splits = {name: Split([], []) for name in NAMES}
    for name, source, target in deal(PAIRS, 0.1, NAMES):
        splits[name].source.append(source)
        splits[name].target.append(target)
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
    expected = list(sentences)
    assert len(sentences) == len(expected) > 200
    assert [sentences[0], sentences[-1]] == [expected[0], expected[-1]]
    for part in (slice(5, 22), slice(-9, None), slice(None, None, 50)):
        assert sentences[part] == expected[part]
    with pytest.raises(IndexError):
        sentences[len(expected)]
    assert expected[3] in sentences and "another" not in sentences


@pytest.mark.parametrize("vocabulary", [VOCABULARY, BPESettings(size=60)])
def test_a_text_on_disk_is_that_in_memory(
    files, memory_corpus, vocabulary, tmp_path
):
    corpus = load(files)
    assert [*map(list, sides(corpus))] == sides(memory_corpus)
    # As committed runs name it.
    content = b"".join(
        "\n".join(side).encode() + b"\0" for side in sides(memory_corpus)
    )
    sha256 = hashlib.sha256(content).hexdigest()
    assert corpus.digest() == memory_corpus.digest() == sha256
    assert corpus.facts == memory_corpus.facts
    text = encode(corpus, vocabulary, 9, tmp_path / "disk")
    expected = encode(memory_corpus, vocabulary, 9, tmp_path / "memory")
    assert ids(text) == ids(expected)
    assert text.test_words == expected.test_words
    tokenizer = text.source_tokenizer
    assert tokenizer.vocabulary == expected.source_tokenizer.vocabulary
    assert text.lost_words == expected.lost_words


def test_a_second_start_reads_no_sentence(files, monkeypatch, tmp_path):
    text = encode(load(files), VOCABULARY, 9, tmp_path)
    facts = text.corpus.facts

    def refuse(*arguments):
        raise AssertionError("the text was read")

    monkeypatch.setattr(own, "lines", refuse)
    for name in ("__iter__", "__getitem__"):
        monkeypatch.setattr(Sentences, name, refuse)
    second_text = encode(load(files), VOCABULARY, 9, tmp_path)
    assert ids(second_text) == ids(text) and second_text.corpus.facts == facts
    assert second_text.lost_words == text.lost_words


@pytest.mark.parametrize("change", ["size", "time", "half a file"])
def test_what_has_changed_is_read_again(files, change, monkeypatch):
    corpus = load(files)
    path = corpus.train.source._place[0]
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
    paths = []
    lines = own.lines

    def record(path):
        paths.append(path)
        return lines(path)

    monkeypatch.setattr(own, "lines", record)
    new_corpus = load(files)
    assert len(paths) == 2
    assert (new_corpus.digest() == corpus.digest()) == (change != "size")
    folder = path.parents[1]
    assert [*folder.parent.glob("*/text")] == [folder / "text"]


def test_a_kill_leaves_no_half_of_a_text(files, monkeypatch, tmp_path):
    make_pairs = own._pairs

    def make_half(*arguments):
        for number, pair in enumerate(make_pairs(*arguments)):
            if number == 100:
                raise KeyboardInterrupt
            yield pair

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(own, "_pairs", make_half)
        load(files)
    [folder] = (tmp_path / "cache" / "texts").iterdir()
    assert [path.name for path in folder.iterdir()] == ["lock"]
    # A process that is killed cannot remove what it has written.
    (folder / ".reprt-0123456789ab").mkdir()
    assert len(load(files).train) > 200
    assert {path.name for path in folder.iterdir()} == {"lock", "text"}


def test_a_text_travels_to_machines_that_have_another_disk(files, tmp_path):
    corpus = load(files)
    small_pickle, large_pickle = map(pickle.dumps, (corpus, corpus.in_memory()))
    assert len(small_pickle) < 5000 < len(large_pickle)
    assert pickle.loads(small_pickle) == corpus
    sentences = sides(corpus)[0][:]
    for path in (tmp_path / "cache").rglob("*.arrow"):
        path.unlink()
    assert pickle.loads(large_pickle).train.source == sentences


def test_a_share_is_held_out_of_a_text_on_disk_as_of_one_in_memory(
    files, memory_corpus
):
    corpus = load(files).validated_on(0.3)
    expected = memory_corpus.validated_on(0.3)
    assert isinstance(corpus.dev.source, Sentences)
    assert corpus.digest() == expected.digest()
    changed_corpus = dataclasses.replace(corpus, dev=corpus.test)
    assert changed_corpus.digest() != expected.digest()


def test_a_vocabulary_is_learnt_on_a_sample_of_a_long_text(
    files, tmp_path, monkeypatch
):
    corpus = load(files)
    samples = []
    learn = bpe.learn_model

    def record(sentences, *options):
        samples.append(list(sentences))
        return learn(samples[-1], *options)

    monkeypatch.setattr(bpe, "learn_model", record)
    messages = []
    vocabulary = BPESettings(size=60, sentences=20, shared=True)
    vocabulary.learn(corpus, tmp_path, messages.append)
    # At equal distances, as many of each side.
    [sample] = samples
    positions = []
    for side, half in zip(sides(corpus), (sample[:20], sample[20:])):
        positions.append([[*side].index(sentence) for sentence in half])
    step = len(corpus.train) / 20
    assert positions[0] == positions[1] and len(positions[0]) == 20
    for position, next_position in zip(positions[0], positions[0][1:]):
        assert abs(next_position - position - step) < 1
    assert any("40/40 sentences, 0:00 left" in line for line in messages)
    wordpiece = WordPieceSettings(size=60)
    assert wordpiece.sentences > len(corpus.train)
    sentences = corpus.train.source
    assert list(wordpiece._sample_evenly(sentences)) == list(sentences)


def test_memory_does_not_grow_with_the_text(tmp_path):
    script = """
import resource, sys
from reprt.data.corpora import own
from reprt.imports import load_pyarrow
load_pyarrow("pyarrow.ipc")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
memory = peak()
own.load("de_to_en", sys.argv[1:])
print(peak() - memory)
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
    growth = subprocess.check_output([sys.executable, "-c", script, *files])
    # As lists the text would take 43 MiB.
    assert int(growth) < 20 * 1024

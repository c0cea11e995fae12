import dataclasses

import numpy as np
import pytest
import tiny
from tiny import VOCABULARY

from reprt.constants import END_ID, START_ID, UNKNOWN_ID
from reprt.data.batching import batches, bucketed_order, training_order
from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.encoding import EncodedSplit, encode
from reprt.data.tokenizers.bpe import BPESettings
from reprt.data.tokenizers.wordpiece import WordPiece, WordPieceSettings


def padding(lengths, order, batch_size):
    """The share of a padded epoch that is padding."""
    size = 0
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        size += len(batch) * lengths[batch].max()
    return 1 - lengths.sum() / size


def test_a_bucketed_order_saves_padding_and_mixes_batches_but_the_last():
    # Spread as those of talks are.
    lengths = np.random.default_rng(0).lognormal(3, 0.6, 10_050).astype(int)
    lengths = lengths.clip(3, 128)
    order = bucketed_order(lengths, 64, seed=0, epoch=0)
    share = padding(lengths, training_order(len(lengths), 0, 0), 64)
    assert padding(lengths, order, 64) < 0.05 < 0.5 < share
    rows = lengths[order[: len(order) // 64 * 64]].reshape(-1, 64)
    maxima = rows.max(axis=1)
    assert 0.3 < (np.diff(maxima) > 0).mean() < 0.7  # neither rises nor falls
    # Two pools: not even the longest of all sentences all meet.
    assert len(rows) > 100 and (maxima == lengths.max()).sum() > 1
    # The last batch is as it was drawn.
    last_row = lengths[order[len(rows) * 64 :]]
    assert len(last_row) == 10_050 % 64 and np.ptp(last_row) > 10


@pytest.fixture(scope="module")
def corpus():
    return tiny.corpus(train=40, dev=5, test=3)


def test_long_sentences_are_cut_and_lose_their_end(corpus, tmp_path):
    long_text = encode(corpus, VOCABULARY, 1000, tmp_path)
    short_text = encode(corpus, VOCABULARY, 10, tmp_path)
    sides = [("source", 10), ("target", 11)]  # inputs and labels each drop one
    for name in ("train", "dev", "test"):
        for side, limit in sides:
            long_rows = getattr(getattr(long_text, name), side)
            short_rows = getattr(getattr(short_text, name), side)
            assert max(map(len, long_rows)) > limit == max(map(len, short_rows))
            for row, short_row in zip(long_rows, short_rows, strict=True):
                assert row[:limit].tolist() == short_row.tolist()
                assert (short_row[-1] == END_ID) == (len(row) <= limit)
    with pytest.raises(ValueError, match="'train_tokens' .* Received: 1."):
        long_text.trained_to(1)
    [((_, inputs), labels)] = batches(short_text.train, 40)
    assert inputs.shape[1] == labels.shape[1] == 10


@pytest.mark.parametrize("vocabulary", [VOCABULARY, BPESettings(size=60)])
def test_the_share_of_unknown_pieces_is_that_of_each_side(tmp_path, vocabulary):
    train = Split(["a casa boa"] * 20, ["the house is good"] * 20)
    dev = Split(["a casa", "Ω ψ"], ["the good house", "good"])
    corpus = Corpus("mine", "pt_to_en", False, "here", train, dev, train)
    for limit in (99, 3):  # cut sentences have no end
        text = encode(corpus, vocabulary, limit, tmp_path)
        assert text.unknown["train"] == {"source": 0, "target": 0}
        pieces = [
            index
            for ids in text.dev.source
            for index in ids.tolist()
            if index not in (START_ID, END_ID)
        ]
        share = pieces.count(UNKNOWN_ID) / len(pieces)
        assert text.unknown["dev"] == {"source": share, "target": 0}
        assert share > 0.2
        assert text.train.cut == (limit == 3)
        assert text.train.of_target().cut == (limit == 3)


def test_vocabularies_are_learnt_only_on_the_training_text(corpus, tmp_path):
    # The 101st sentence and on.
    other_corpus = tiny.corpus(train=5, dev=100, test=3)
    mixture = dataclasses.replace(
        corpus, dev=other_corpus.train, test=other_corpus.test
    )
    other_text = encode(mixture, VOCABULARY, 99, tmp_path)
    text = encode(corpus, VOCABULARY, 99, tmp_path)
    assert (
        other_text.source_tokenizer.digest() == text.source_tokenizer.digest()
    )
    assert text.source_tokenizer.digest() != text.target_tokenizer.digest()
    assert (len(text.train), len(text.dev), len(text.test)) == (40, 5, 3)


def ids(text):
    return [
        [row.tolist() for row in side]
        for split in (text.train, text.dev, text.test)
        for side in (split.source, split.target)
    ]


def test_a_text_is_tokenised_once_for_all_that_changes_its_ids(
    corpus, tmp_path, monkeypatch
):
    calls = []
    encode_chunks = WordPiece.encode_chunks

    def record(self, sentences, max_tokens=None):
        calls.append((len(sentences), max_tokens))
        yield from encode_chunks(self, sentences, max_tokens)

    monkeypatch.setattr(WordPiece, "encode_chunks", record)
    text = encode(corpus, VOCABULARY, 99, tmp_path)
    # Each side of each split, after the references.
    sides = [(count, limit) for count in (40, 5, 3) for limit in (99, 100)]
    *calls_on_sides, call_on_words = calls
    assert calls_on_sides == [(3, None), *sides]
    assert call_on_words[1] is None
    assert ids(encode(corpus, VOCABULARY, 99, tmp_path)) == ids(text)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ids",
        "vocabularies",
    ]
    encode(corpus, VOCABULARY, 98, tmp_path)
    assert len(calls) == 8 + 6
    encode(corpus, WordPieceSettings(size=45), 99, tmp_path)
    other_corpus = dataclasses.replace(
        corpus, dev=tiny.corpus(train=40, dev=6, test=3).dev
    )
    encode(other_corpus, VOCABULARY, 99, tmp_path)
    assert calls[22:] == [(6, 99), (6, 100)]


@pytest.mark.parametrize("settings", [VOCABULARY, BPESettings(size=60)])
@pytest.mark.parametrize("kind", ["vocabularies", "ids"])
@pytest.mark.parametrize(
    "damage", ["a flipped bit", "half a file", "no checksum"]
)
def test_a_damaged_cache_is_made_anew(corpus, tmp_path, settings, kind, damage):
    text = encode(corpus, settings, 99, tmp_path)
    expected = ids(text), text.source_tokenizer.vocabulary
    content = {path: path.read_bytes() for path in tmp_path.glob("*/*")}
    for path in (tmp_path / kind).iterdir():
        data = bytearray(path.read_bytes())
        if damage == "a flipped bit":
            data[len(data) // 2] ^= 1
        elif damage == "half a file":
            del data[len(data) // 2 :]
        if damage != "no checksum":
            path.unlink()  # for its bytes are mapped
            path.write_bytes(data)
        elif path.suffix == ".sha256":
            path.unlink()
    messages = []
    new_text = encode(corpus, settings, 99, tmp_path, messages.append)
    assert (ids(new_text), new_text.source_tokenizer.vocabulary) == expected
    assert {path: path.read_bytes() for path in tmp_path.glob("*/*")} == content
    assert damage == "no checksum" or "is damaged" in "".join(messages)
    messages.clear()
    encode(corpus, settings, 99, tmp_path, messages.append)
    assert messages == []


@pytest.mark.parametrize(
    "target, lost_share",
    [
        ("The house, isn't it?", 0),
        ("한국어", 0),
        ("Straße Haus", 1 / 2),
        ("パン パン ハム", 2 / 3),
        ("мой дом", 1 / 2),
        ("λόγος", 1),
        ("हिन्दी", 1),
        ("été ete", 1 / 2),
    ],
)
def test_words_that_wordpiece_loses_are_counted(
    corpus, tmp_path, target, lost_share
):
    train = Split(["a"] * 20, [target] * 20)
    target_corpus = dataclasses.replace(corpus, train=train)
    for settings, share in (
        (WordPieceSettings(), lost_share),
        (BPESettings(size=40), 0),
    ):
        assert encode(target_corpus, settings, 99, tmp_path).lost_words == share


def test_pairs_are_taken_by_index_or_by_mask():
    rows = [np.arange(2, 4 + length) for length in range(4)]
    split = EncodedSplit(rows, rows)
    for indices in ([1, 3], np.array([False, True, False, True])):
        taken = split.only(indices)
        assert [len(row) for row in taken.source] == [3, 5]
    assert len(split.only([])) == 0


def test_pairs_of_the_training_text_are_noticed():
    rows = [np.array(ids) for ids in ([2, 5, 6, 3], [2, 3], [2, 6, 5, 3])]
    train = EncodedSplit(rows, rows[::-1])
    assert train.share_in(train) == 1
    # Another target, or no target, makes another pair.
    nothing = np.zeros(0, int)
    others = EncodedSplit(
        [rows[2], rows[0], rows[1], rows[0]],
        [rows[1], rows[0], nothing, rows[2]],
    )
    assert others.share_in(train) == 1 / 4
    assert train.only([]).share_in(train) == 0

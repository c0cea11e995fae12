import dataclasses

import numpy as np
import pytest
from tiny import VOCABULARY

from reprt.constants import END_ID, START_ID, UNKNOWN_ID
from reprt.data.batching import batches, bucketed_order, training_order
from reprt.data.corpora import embedded
from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.encoding import encode
from reprt.data.tokenizers.bpe import BPESettings
from reprt.data.tokenizers.wordpiece import WordPiece, WordPieceSettings


def padding(lengths, order, batch_size):
    """The share of a padded epoch that is padding."""
    cut = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    return 1 - lengths.sum() / sum(len(few) * lengths[few].max() for few in cut)


def test_a_bucketed_order_saves_padding_and_mixes_batches_but_the_last():
    # Spread as those of talks are.
    lengths = np.random.default_rng(0).lognormal(3, 0.6, 10_050).astype(int)
    lengths = lengths.clip(3, 128)
    order = bucketed_order(lengths, 64, seed=0, epoch=0)
    shuffled = padding(lengths, training_order(len(lengths), 0, 0), 64)
    assert padding(lengths, order, 64) < 0.05 < 0.5 < shuffled
    full = lengths[order[: len(order) // 64 * 64]].reshape(-1, 64)
    longest = full.max(axis=1)
    assert 0.3 < (np.diff(longest) > 0).mean() < 0.7  # neither rises nor falls
    # Two pools: not even the longest of all sentences all meet.
    assert len(full) > 100 and (longest == lengths.max()).sum() > 1
    rest = lengths[order[len(full) * 64 :]]
    assert len(rest) == 10_050 % 64 and np.ptp(rest) > 10  # as drawn


@pytest.fixture(scope="module")
def corpus():
    return embedded.load(train=40, dev=5, test=3)


def test_long_sentences_are_cut_and_lose_their_end(corpus, tmp_path):
    whole = encode(corpus, VOCABULARY, 1000, tmp_path)
    cut = encode(corpus, VOCABULARY, 10, tmp_path)
    sides = [("source", 10), ("target", 11)]  # inputs and labels each drop one
    for name in ("train", "dev", "test"):
        for side, kept in sides:
            long, short = (
                getattr(getattr(t, name), side) for t in (whole, cut)
            )
            assert max(map(len, long)) > kept == max(map(len, short))
            for one, other in zip(long, short, strict=True):
                assert one[:kept].tolist() == other.tolist()
                assert (other[-1] == END_ID) == (len(one) <= kept)
    with pytest.raises(ValueError, match="'train_tokens' .* Received: 1."):
        whole.trained_to(1)
    [((_, inputs), labels)] = batches(cut.train, 40)
    assert inputs.shape[1] == labels.shape[1] == 10


@pytest.mark.parametrize("vocabulary", [VOCABULARY, BPESettings(size=60)])
def test_the_share_of_unknown_pieces_is_that_of_each_side(tmp_path, vocabulary):
    train = Split(["a casa boa"] * 20, ["the house is good"] * 20)
    dev = Split(["a casa", "Ω ψ"], ["the good house", "good"])
    corpus = Corpus("mine", "pt_to_en", False, "here", train, dev, train)
    for longest in (99, 3):  # cut sentences have no end
        text = encode(corpus, vocabulary, longest, tmp_path)
        assert text.unknown["train"] == {"source": 0, "target": 0}
        pieces = [
            index
            for ids in text.dev.source
            for index in ids.tolist()
            if index not in (START_ID, END_ID)
        ]
        share = pieces.count(UNKNOWN_ID) / len(pieces)
        assert (
            text.unknown["dev"] == {"source": share, "target": 0}
            and share > 0.2
        )
        assert (text.train.cut, text.train.of_target().cut) == (
            longest == 3,
        ) * 2


def test_vocabularies_are_learnt_only_on_the_training_text(corpus, tmp_path):
    other = embedded.load(train=5, dev=100, test=3)  # the 101st sentence and on
    mixed = dataclasses.replace(corpus, dev=other.train, test=other.test)
    mixed = encode(mixed, VOCABULARY, 99, tmp_path)
    text = encode(corpus, VOCABULARY, 99, tmp_path)
    assert mixed.source_tokenizer.digest() == text.source_tokenizer.digest()
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
    tokenised, encode_chunks = [], WordPiece.encode_chunks

    def counted(self, sentences, max_tokens=None):
        tokenised.append((len(sentences), max_tokens))
        yield from encode_chunks(self, sentences, max_tokens)

    monkeypatch.setattr(WordPiece, "encode_chunks", counted)
    first = encode(corpus, VOCABULARY, 99, tmp_path)
    # Each side of each split, after the references.
    sides = [(n, longest) for n in (40, 5, 3) for longest in (99, 100)]
    *before, words = tokenised
    assert before == [(3, None), *sides] and words[1] is None
    assert ids(encode(corpus, VOCABULARY, 99, tmp_path)) == ids(first)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ids",
        "vocabularies",
    ]
    encode(corpus, VOCABULARY, 98, tmp_path)
    assert len(tokenised) == 8 + 6
    encode(corpus, WordPieceSettings(size=45), 99, tmp_path)
    other = dataclasses.replace(
        corpus, dev=embedded.load(train=40, dev=6, test=3).dev
    )
    encode(other, VOCABULARY, 99, tmp_path)
    assert tokenised[22:] == [(6, 99), (6, 100)]


@pytest.mark.parametrize("settings", [VOCABULARY, BPESettings(size=60)])
@pytest.mark.parametrize("kind", ["vocabularies", "ids"])
@pytest.mark.parametrize(
    "damage", ["a flipped bit", "half a file", "no checksum"]
)
def test_a_damaged_cache_is_made_anew(corpus, tmp_path, settings, kind, damage):
    first = encode(corpus, settings, 99, tmp_path)
    whole = ids(first), first.source_tokenizer.vocabulary
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
    said = []
    second = encode(corpus, settings, 99, tmp_path, said.append)
    assert (ids(second), second.source_tokenizer.vocabulary) == whole
    assert {path: path.read_bytes() for path in tmp_path.glob("*/*")} == content
    assert damage == "no checksum" or "is damaged" in "".join(said)
    said.clear()
    encode(corpus, settings, 99, tmp_path, said.append)
    assert said == []


@pytest.mark.parametrize(
    "target, lost",
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
def test_words_that_wordpiece_loses_are_counted(corpus, tmp_path, target, lost):
    train = Split(["a"] * 20, [target] * 20)
    other = dataclasses.replace(corpus, train=train)
    for settings, share in (
        (WordPieceSettings(), lost),
        (BPESettings(size=40), 0),
    ):
        assert encode(other, settings, 99, tmp_path).lost_words == share

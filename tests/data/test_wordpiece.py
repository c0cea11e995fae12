import collections
import random
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
import tiny

from reprt.constants import END_ID, RESERVED, START_ID, UNKNOWN_ID
from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.tokenizers import wordpiece
from reprt.data.tokenizers.wordpiece import (
    WordPiece,
    WordPieceSettings,
    learn_vocabulary,
)
from reprt.data.tokenizers.wordpiece_learner import learn_pieces

# What tensorflow-text's own tests expect of its tokenizers, and follows from them.
PIECES = """taste the rust ##is ##c indie ##fr ##ost han ku ##o - yu ( 韓 國 食 ) 🤔
yo ^ what $ is * up ? 爱 上 一 个 unwanted , running к ##уп ##иха la ' don t"""
PUBLISHED_PIECES = {
    "taste the rustisc indiefrost": "taste the rust ##is ##c indie ##fr ##ost",
    "Han Kuo-yu (韓國食)🤔": "han ku ##o - yu ( 韓 國 食 ) 🤔",
    "yo^what$is*up?": "yo ^ what $ is * up ?",
    "爱上一个": "爱 上 一 个",
    "UNwante\u0301d,running": "unwanted , running",  # the accent after its letter
    "купиха Купиха": "к ##уп ##иха к ##уп ##иха",
    # A word is known as a whole or not at all.
    "thecantfindme": "[UNK]",
    "영어독해 자만심 왜 문제일까": "[UNK] [UNK] [UNK] [UNK]",  # split only at spaces
    # In tensorflow-text's tests a word of more than 100 bytes is unknown.
    "rust" + "isc" * 1000: "rust" + " ##is ##c" * 1000,
    # Control characters separate; what has no width vanishes; any space is one.
    "the\x00taste\x07la": "the taste la",
    "tas\u200bte t\u00adhe \ufeffla": "taste the la",
    # Not so in tensorflow-text's tests: an apostrophe is a word, as in all of
    # `BertTokenizer`, and no reserved token is kept whole.
    "don't": "don ' t",
    "la[UNK]": "la [UNK] [UNK] [UNK]",
}


@pytest.fixture(scope="module")
def sentences():
    return tiny.corpus(train=60, dev=1, test=1).train.source


# What NFD takes apart and leaves without an accent to drop, and what it does not.
COMPOSED_TEXTS = {
    "Korean": "한국어를 배웁니다.",
    "Tamil": "கொள்கை பொறி",
    "Japanese": "ガラスのパズル",
    "Vietnamese": "Tiếng Việt ở đây",
    "Hebrew": "שלום עולם, מה שלומך?",
    "Russian": "привет, мир! как дела?",
    "Portuguese": "a ação do avô: não é fácil...",
    "French": '100% "naïve" — c\'est la vie',
}


def words(sentence):
    """The words as WordPiece sees them: no accents, no case, some signs apart."""
    letters = unicodedata.normalize("NFKD", sentence.casefold())
    characters = "".join(
        character
        for character in letters
        if unicodedata.category(character) != "Mn"
    )
    pieces = (
        f" {character} "
        if character in "$+<=>^`|~"
        or unicodedata.category(character)[0] == "P"
        or unicodedata.name(character).startswith("CJK UNIFIED")
        else character
        for character in characters
    )
    return unicodedata.normalize("NFC", " ".join("".join(pieces).split()))


@pytest.mark.parametrize("script", COMPOSED_TEXTS)
def test_what_is_written_is_composed(script):
    texts = [
        COMPOSED_TEXTS[script],
        unicodedata.normalize("NFD", COMPOSED_TEXTS[script]),
    ]
    tokenizer = WordPiece(learn_vocabulary(texts * 9, 100))
    rows = tokenizer.encode(texts)
    assert tokenizer.decode(rows) == [words(COMPOSED_TEXTS[script])] * 2
    pieces = tf.ragged.constant([row[1:-1].tolist() for row in rows], tf.int64)
    outputs = [
        text.decode() for text in tokenizer.graph_detokenize(pieces).numpy()
    ]
    assert outputs == list(map(tokenizer.detokenize, tokenizer.decode(rows)))
    assert all(unicodedata.is_normalized("NFC", text) for text in outputs)
    if script == "Korean":
        assert outputs == [COMPOSED_TEXTS[script]] * 2


def join_words(signs, count, length):
    """Sentences of words of a script, without a space between them."""
    generator = random.Random(0)
    words = ["".join(generator.choices(signs, k=4)) for _ in range(9)]
    return ["".join(generator.choices(words, k=length)) for _ in range(count)]


# Of each kind a text that has more signs, or longer words, than TensorFlow's learner
# and tokenizer take.
LONG_TEXTS = {
    "Chinese": [
        "".join(map(chr, range(n, n + 30))) for n in range(0x4E00, 0x5800, 30)
    ],
    "Korean": [
        "".join(map(chr, range(n, n + 25))) for n in range(0xAC00, 0xD7A0, 400)
    ],
    "Thai": join_words("กขคงจชดตถทนบปผพมยรลวสหอา", 40, 25),
    "links": [
        f"see {identifier} and a{identifier}"
        for identifier in join_words("abcdef0123456789", 20, 40)
    ],
    "an identifier": ["one word", "x" * 300 + "ß€語" * 40, "another word"] * 9,
}


@pytest.mark.parametrize("kind", LONG_TEXTS)
def test_nothing_of_a_training_text_is_unknown(kind):
    texts = LONG_TEXTS[kind]
    tokenizer = WordPiece(learn_vocabulary(texts, 400))
    rows = tokenizer.encode(texts)
    assert not any(UNKNOWN_ID in ids for ids in rows)
    outputs = tokenizer.decode(rows)
    assert outputs == list(map(words, texts))
    # What has no accents comes back as it was, without a space.
    if kind in ("Chinese", "Korean", "links"):
        assert [tokenizer.detokenize(text) for text in outputs] == texts
    # Words that recur are learnt, however long the runs are that they stand in.
    if kind == "Thai":
        assert sum(map(len, rows)) < 0.7 * sum(
            len(words(text)) for text in texts
        )


def test_signs_that_hardly_occur_do_not_crowd_a_vocabulary(monkeypatch):
    signs = "".join(map(chr, range(0x4E00, 0x5300)))
    texts = [signs, *["the house " * 50] * 200]
    assert set(signs) <= set(learn_vocabulary(texts, 100))
    monkeypatch.setattr(wordpiece, "COVERAGE", 0.98)
    remainder = set(learn_vocabulary(texts, 100)) & set(signs)
    assert len(remainder) == 1000 - len(set("thehouse"))


def test_within_its_limits_the_learner_is_that_of_the_tutorial(sentences):
    from tensorflow_text.tools.wordpiece_vocab import (
        bert_vocab_from_dataset as tutorial,
    )

    dataset = tf.data.Dataset.from_tensor_slices(list(sentences)).batch(16)
    for size in (60, 300):
        expected = tutorial.bert_vocab_from_dataset(
            dataset, size, list(RESERVED), {"lower_case": True}
        )
        assert learn_vocabulary(sentences, size) == expected


@pytest.mark.parametrize("text", ["Portuguese", "English", "drawn", "rare"])
@pytest.mark.parametrize("size, characters", [(200, 1000), (8000, 15)])
def test_the_learner_gives_the_vocabulary_of_tensorflows(
    text, size, characters
):
    from tensorflow_text.tools.wordpiece_vocab import (
        wordpiece_tokenizer_learner_lib as tensorflow_learner,
    )

    train = tiny.corpus(train=3000).train
    generator = np.random.default_rng(0)
    sentences = {
        "Portuguese": train.source,
        "English": train.target,
        "drawn": [
            "".join(row) for row in generator.choice([*"aab ", "é"], (300, 40))
        ],
        "rare": ["one", "two", "x", "#"],
    }[text]
    counts = collections.Counter(" ".join(sentences).split())
    expected = tensorflow_learner.learn(
        counts, size, list(RESERVED), max_unique_chars=characters
    )
    allowed_characters = tensorflow_learner.get_allowed_chars(
        counts.items(), characters
    )
    assert learn_pieces(counts, size, allowed_characters) == expected


def test_pieces_are_those_that_tensorflow_text_publishes():
    tokenizer = WordPiece([*RESERVED, *PIECES.split()])
    rows = tokenizer.encode(list(PUBLISHED_PIECES))
    for ids, expected in zip(rows, PUBLISHED_PIECES.values(), strict=True):
        pieces = [tokenizer.vocabulary[index] for index in ids]
        assert pieces == ["[START]", *expected.split(), "[END]"]
    ids = tf.ragged.constant([row[1:-1].tolist() for row in rows], tf.int64)
    texts = tf.strings.reduce_join(
        tokenizer.graph.detokenize(ids), -1, separator=" "
    )
    assert tokenizer.decode(rows) == [text.decode() for text in texts.numpy()]


def test_ids_go_from_start_to_end_and_text_writes_no_reserved_token(sentences):
    tokenizer = WordPiece(learn_vocabulary(sentences, 200))
    assert tokenizer.words(sentences) == list(map(words, sentences))
    for ids in tokenizer.encode([*sentences, "[START] [END] [PAD]"]):
        assert (
            ids.dtype == np.int32 and ids[0] == START_ID and ids[-1] == END_ID
        )
        assert not set(ids[1:-1].tolist()) & {0, START_ID, END_ID}
        assert ids.max() < len(tokenizer)
    assert tokenizer.words(["漢"]) == ["[UNK]"]


def test_a_vocabulary_is_learnt_once_for_each_text_and_size(
    tmp_path, monkeypatch
):
    calls = []

    def record(sentences, size):
        calls.append((list(sentences), size))
        return RESERVED

    monkeypatch.setattr(wordpiece, "learn_vocabulary", record)
    texts = (["a", "b"], 100), (["a", "b"], 101), (["ab"], 100), (["a\nb"], 100)
    for lines, size in texts * 2:
        split = Split(lines, lines)
        corpus = Corpus("mine", "pt_to_en", False, "here", split, split, split)
        WordPieceSettings(size=size).learn(corpus, tmp_path / "new")
    assert calls == list(texts)
    # Each with its checksum, and no temporary file.
    assert len(list((tmp_path / "new").glob("*.vocab"))) == 4
    assert len(list((tmp_path / "new").iterdir())) == 8


def test_a_vocabulary_survives_its_file(tmp_path):
    pieces = [*RESERVED, "a", "##ção", "é", "\u2028", "\x85", "##'"]
    path = tmp_path / "vocabulary"
    WordPiece(pieces).write(path)
    assert WordPiece.read(path).vocabulary == tuple(pieces)


@pytest.mark.parametrize(
    "pieces, message",
    [
        (
            ["[UNK]", "[PAD]", "[START]", "[END]"],
            "begins with '\\[UNK\\] \\[PAD\\]",
        ),
        (
            ["[PAD]", "[UNK]"],
            "begins with \\[PAD\\] \\[UNK\\] \\[START\\] \\[END\\]",
        ),
        ([], "begins with ''"),
    ],
)
def test_what_is_no_vocabulary_is_refused_and_its_file_named(
    tmp_path, pieces, message
):
    with pytest.raises(ValueError, match=message):
        WordPiece(pieces)
    (tmp_path / "damaged.vocab").write_text("\n".join(pieces))
    with pytest.raises(
        ValueError, match=f"damaged.vocab cannot be used: .*{message}"
    ):
        WordPiece.read(tmp_path / "damaged.vocab")

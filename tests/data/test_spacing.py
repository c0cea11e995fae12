import random

import pytest
import tensorflow as tf

from reprt.constants import RESERVED
from reprt.data.corpora import embedded
from reprt.data.tokenizers.spacing import RULES, detokenised
from reprt.data.tokenizers.wordpiece import WordPiece

WRITTEN = {
    "": "",
    "a": "a",
    "it ' s late .": "it's late.",
    "isn ' t it ?": "isn't it?",
    "they ' re here , we ' ve left ; i ' ll go : you ' d stay !": (
        "they're here, we've left; i'll go: you'd stay!"
    ),
    "the boys ' mother": "the boys ' mother",
    "' s": "' s",  # there is no word before it
    "at 9 : 30": "at 9:30",
    "1 , 000 . 5 or 1 , 2": "1,000.5 or 1,2",
    "1 : 2 : 3 : 4": "1:2:3:4",
    "a - b - c - d": "a-b-c-d",
    "well - known": "well-known",
    "so - - he said - - no": "so -- he said -- no",
    "- first": "- first",
    "wait . . .": "wait...",
    "wait . . . . then": "wait... then",
    '" yes " , he said': '"yes", he said',
    'he said " a " and " b "': 'he said "a" and "b"',
    'one " alone': 'one " alone',
    "( a ) [ b ] { c }": "(a) [b] {c}",
    "¿ que ? ¡ si !": "¿que? ¡si!",
    "$ 5 # 3 50 %": "$5 #3 50%",
    "ação … não": "ação… não",
    "olá , 世界 . שלום !": "olá, 世界. שלום!",
}


@pytest.mark.parametrize("words", WRITTEN)
def test_words_become_text_as_people_write_it(words):
    assert detokenised(words) == WRITTEN[words]


def by_tensorflow(texts):
    found = tf.constant(texts)
    for pattern, written in RULES:
        found = tf.strings.regex_replace(found, pattern, written)
    return [text.decode() for text in found.numpy()]


def samples():
    """Sentences of a corpus, and all that random punctuation can come to."""
    sentences = embedded.load(train=200, dev=1, test=1).train
    written = [*sentences.source, *sentences.target]
    letters = sorted(set("".join(written).lower()) - {" "})
    tokenizer = WordPiece([*RESERVED, *letters, *(f"##{one}" for one in letters)])
    texts = tokenizer.decode(tokenizer.encode(written))
    chance = random.Random(0)
    pieces = [*" '\"-.,;:!?%()[]{}…¿¡$#", "s", "t", "re", "9", "30", "a", "não", "שלום"]
    pieces += ["世", "🙂", "\\1", "\\", "$", "^", "e\u0301", "\u00a0", "٣"]
    for length in range(2, 14):
        for _ in range(250):
            texts.append(" ".join(chance.choices(pieces, k=length)))
            texts.append("".join(chance.choices(pieces, k=length)))
    return texts


def test_tensorflow_writes_what_python_writes():
    """For so an exported model writes what the package writes."""
    texts = [*WRITTEN, *samples()]
    expected = [detokenised(text) for text in texts]
    assert by_tensorflow(texts) == expected
    changed = sum(text != written for text, written in zip(texts, expected))
    assert changed > 2000


def test_nothing_but_spaces_and_quotes_is_lost():
    for text in samples():
        assert detokenised(text).replace(" ", "") == text.replace(" ", "")

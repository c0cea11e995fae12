import types

import pytest
import sacrebleu
from sacrebleu.metrics import bleu

from reprt.analysis.scores import on_corpus_tokens, scores, tokenizer_of
from reprt.data.tokenizers.spacing import detokenize_words

WORDS = ["it ' s late .", "he came at 9 : 30 , alone"]
TEXT = ["It's late.", "He came at 9:30, alone"]


def make_tokenizer(words, detokenize=detokenize_words):
    """As WordPiece's, of which the references are these words."""
    return types.SimpleNamespace(
        words=lambda references: words, detokenize=detokenize, keeps_case=False
    )


def test_scores_are_sacrebleus():
    translations = ["it ' s very late .", "she came at 9 : 30 , alone ."]
    texts = ["it's very late.", "she came at 9:30, alone."]
    results = scores(make_tokenizer(WORDS), translations, TEXT)
    assert [(score.metric, score.form) for score in results] == [
        ("BLEU", "corpus tokens"),
        ("chrF", "corpus tokens"),
        ("TER", "corpus tokens"),
        ("BLEU", "detokenised"),
        ("chrF", "detokenised"),
        ("TER", "detokenised"),
    ]
    settings = ("tok:none", "nc:6", "norm:no", "case:lc", "case:lc", "norm:yes")
    for score, setting in zip(results, settings):
        assert setting in score.signature.split("|")
        assert f"version:{sacrebleu.__version__}" in score.signature
    values = [score.value for score in results]
    expected = [
        sacrebleu.corpus_bleu(
            translations, [WORDS], tokenize="none", force=True
        ),
        sacrebleu.corpus_chrf(translations, [WORDS]),
        sacrebleu.corpus_ter(translations, [WORDS]),
        sacrebleu.corpus_bleu(texts, [TEXT], tokenize="13a", lowercase=True),
        sacrebleu.corpus_chrf(
            [text.lower() for text in texts], [[text.lower() for text in TEXT]]
        ),
        sacrebleu.corpus_ter(texts, [TEXT], normalized=True),
    ]
    assert values == pytest.approx([score.score for score in expected])
    assert all(0 < value < 100 for value in values)


def test_what_the_vocabulary_lacks_is_never_right():
    words = ["a house in [UNK] ."]
    results = on_corpus_tokens(
        scores(make_tokenizer(words), words, ["A house in Łódź."])
    )
    assert results["BLEU"].value < 70 and results["chrF"].value < 90
    assert results["TER"].value == 20  # one word of five


# A text in each kind of script, as people write it and as WordPiece has its words.
LANGUAGES = {
    "zh-CN": ("zh", "你好，世界！", "你 好 ， 世 界 ！"),
    "ja": ("char", "東京のカメラを見た。", "東 京 のカメラを 見 た 。"),
    "ko": ("char", "한국어를 배웁니다.", "한국어를 배웁니다 ."),
    "th": ("char", "สวสดครบ", "สวสดครบ"),
    "ar": ("13a", "كيف حالك اليوم يا صديقي؟", "كيف حالك اليوم يا صديقي ؟"),
    "pt-br": ("13a", "ele nao sabe disso.", "ele nao sabe disso ."),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_right_translation_has_100_in_any_language(monkeypatch, language):
    get_tokenizer = bleu._get_tokenizer

    def refuse_mecab(name):
        if "mecab" in name:
            raise RuntimeError("requires extra dependencies")
        return get_tokenizer(name)

    monkeypatch.setattr(bleu, "_get_tokenizer", refuse_mecab)
    name, text, words = LANGUAGES[language]
    results = scores(make_tokenizer([words]), [words], [text], language)
    text_results = scores(make_tokenizer([text], str), [text], [text], language)
    if language != "ko":  # of fewer than four words
        values = [score.value for score in results]
        assert values == pytest.approx([100, 100, 0] * 2)
    if not text.count(" "):
        assert text_results[0].value == pytest.approx(100)  # as with BPE
        assert f"tok:{name}" in results[0].signature
    else:
        assert "tok:none" in results[0].signature
    assert results[3].value == pytest.approx(100)
    assert f"tok:{name}" in results[3].signature.split("|")
    reversal_results = scores(
        make_tokenizer([words]), [words], [text[::-1]], language
    )
    assert reversal_results[3].value < 60


def test_what_splits_japanese_and_korean_is_taken_where_it_is(monkeypatch):
    monkeypatch.setattr(
        bleu,
        "_get_tokenizer",
        lambda name: type(name, (), {"signature": lambda self: name}),
    )
    assert [tokenizer_of(tag) for tag in ("ja-JP", "ko")] == [
        "ja-mecab",
        "ko-mecab",
    ]

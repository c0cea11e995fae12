import types

import pytest
import sacrebleu
from sacrebleu.metrics import bleu

from reprt.analysis.scores import on_corpus_tokens, scores, tokenizer_of
from reprt.data.tokenizers.spacing import detokenize_words

WORDS = ["it ' s late .", "he came at 9 : 30 , alone"]
TEXT = ["It's late.", "He came at 9:30, alone"]


def tokenizer(words, detokenize=detokenize_words):
    """As WordPiece's, of which the references are these words."""
    return types.SimpleNamespace(
        words=lambda references: words, detokenize=detokenize, keeps_case=False
    )


def test_scores_are_sacrebleus():
    words = ["it ' s very late .", "she came at 9 : 30 , alone ."]
    text = ["it's very late.", "she came at 9:30, alone."]
    results = scores(tokenizer(WORDS), words, TEXT)
    assert [(score.metric, score.form) for score in results] == [
        ("BLEU", "corpus tokens"),
        ("chrF", "corpus tokens"),
        ("TER", "corpus tokens"),
        ("BLEU", "detokenised"),
        ("chrF", "detokenised"),
        ("TER", "detokenised"),
    ]
    parts = ("tok:none", "nc:6", "norm:no", "case:lc", "case:lc", "norm:yes")
    for score, part in zip(results, parts):
        assert part in score.signature.split("|")
        assert f"version:{sacrebleu.__version__}" in score.signature
    values = [score.value for score in results]
    lowercase_text = [sentence.lower() for sentence in text]
    lowercase_reference = [sentence.lower() for sentence in TEXT]
    expected = [
        sacrebleu.corpus_bleu(words, [WORDS], tokenize="none", force=True),
        sacrebleu.corpus_chrf(words, [WORDS]),
        sacrebleu.corpus_ter(words, [WORDS]),
        sacrebleu.corpus_bleu(text, [TEXT], tokenize="13a", lowercase=True),
        sacrebleu.corpus_chrf(lowercase_text, [lowercase_reference]),
        sacrebleu.corpus_ter(text, [TEXT], normalized=True),
    ]
    assert values == pytest.approx([score.score for score in expected])
    assert all(0 < value < 100 for value in values)


def test_each_translation_has_a_reference():
    words = ["a house ."]
    with pytest.raises(ValueError, match="1 and 2 in translations and refer"):
        scores(tokenizer(WORDS), words, TEXT)
    with pytest.raises(ValueError, match="1 and 2 in translations and refer"):
        scores(tokenizer(WORDS), words, TEXT[:1], words=WORDS)


def test_what_the_vocabulary_lacks_is_never_right():
    words = ["a house in [UNK] ."]
    results = scores(tokenizer(words), words, ["A house in Łódź."])
    metrics = on_corpus_tokens(results)
    assert metrics["BLEU"].value < 70 and metrics["chrF"].value < 90
    # One word of five.
    assert metrics["TER"].value == 20


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

    def without_mecab(name):
        if "mecab" in name:
            raise RuntimeError("requires extra dependencies")
        return get_tokenizer(name)

    monkeypatch.setattr(bleu, "_get_tokenizer", without_mecab)
    name, text, words = LANGUAGES[language]
    results = scores(tokenizer([words]), [words], [text], language)
    # The text of Korean has fewer than four words.
    if language != "ko":
        values = [score.value for score in results]
        assert values == pytest.approx([100, 100, 0] * 2)
    # With BPE, the words of a text are those of the text as it is written.
    bpe_results = scores(tokenizer([text], str), [text], [text], language)
    if not text.count(" "):
        assert bpe_results[0].value == pytest.approx(100)
        assert f"tok:{name}" in results[0].signature
    else:
        assert "tok:none" in results[0].signature
    assert results[3].value == pytest.approx(100)
    assert f"tok:{name}" in results[3].signature.split("|")
    results = scores(tokenizer([words]), [words], [text[::-1]], language)
    assert results[3].value < 60


def test_what_splits_japanese_and_korean_is_taken_where_it_is(monkeypatch):
    def get_tokenizer(name):
        return type(name, (), {"signature": lambda self: name})

    monkeypatch.setattr(bleu, "_get_tokenizer", get_tokenizer)
    assert tokenizer_of("ja-JP") == "ja-mecab"
    assert tokenizer_of("ko") == "ko-mecab"

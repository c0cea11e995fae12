"""Scores of translations, by sacrebleu; each number says what was compared."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from reprt.constants import UNKNOWN
from reprt.data.corpora.corpus import check_aligned
from reprt.data.tokenizers.tokenizer import Tokenizer
from reprt.settings import Settings

# How sacrebleu splits text that has no spaces between words, and Korean, by the first
# part of a language's tag.
LANGUAGE_TOKENIZERS = {
    **dict.fromkeys("zh zho chi cmn yue wuu hak gan lzh".split(), "zh"),
    **dict.fromkeys("ja jpn".split(), "ja-mecab"),
    **dict.fromkeys("ko kor".split(), "ko-mecab"),
    **dict.fromkeys("th tha lo lao km khm my mya bur".split(), "char"),
    **dict.fromkeys("bo bod tib dz dzo shn".split(), "char"),
}


CORPUS_TOKENS, DETOKENISED = "corpus tokens", "detokenised"


class Metric(NamedTuple):
    """A metric of sacrebleu."""

    name: str
    make: Callable[[Any, str, bool], Any]
    """Makes it from `sacrebleu.metrics`, the name of the tokenizer that splits words
    further, `"none"` for none, and whether case is ignored."""
    pages: Mapping[str, int]
    """The pages that show it, each with the number of digits."""

    @property
    def key(self) -> str:
        """Its name among a run's numbers."""
        return f"test_{self.name.lower()}"


# A new metric is a new row: `reprt evaluate` prints all of them, and training computes
# those that a page shows. `force=True` because tokenised text is given on purpose: no
# warning is wanted.
METRICS = (
    Metric(
        "BLEU",
        lambda module, tokenizer, lowercase: module.BLEU(
            tokenize=tokenizer,
            lowercase=lowercase,
            force=True,
        ),
        {
            "report": 1,
            "comparison": 2,
            "table1": 2,
            "families": 1,
            "translation": 1,
        },
    ),
    Metric(
        "chrF",
        lambda module, tokenizer, lowercase: module.CHRF(lowercase=lowercase),
        {"table1": 2, "families": 1, "translation": 1},
    ),
    Metric(
        "TER",
        lambda module, tokenizer, lowercase: module.TER(
            normalized=tokenizer != "none",
            asian_support=True,
            case_sensitive=not lowercase,
        ),
        {},
    ),
)
BLEU_ONLY = tuple(metric for metric in METRICS if metric.name == "BLEU")
PAGE_METRICS = tuple(metric for metric in METRICS if metric.pages)


def metrics_of_page(page: str) -> list[Metric]:
    """Returns the metrics that a page shows.

    >>> [metric.name for metric in metrics_of_page("table1")]
    ['BLEU', 'chrF']
    """
    return [metric for metric in METRICS if page in metric.pages]


class Score(Settings):
    """One number of a metric."""

    metric: str
    """Its name in `METRICS`."""
    form: str
    """That of the sentences, `"corpus tokens"` or `"detokenised"`."""
    value: float
    """From 0 to 100, and of TER also above. Of TER, the lower is the better."""
    signature: str
    """Sacrebleu's."""


def on_corpus_tokens(scores: Iterable[Score]) -> dict[str, Score]:
    """Returns the scores on corpus tokens, which pages show, by the metric's name."""
    by_metric = {}
    for score in scores:
        if score.form == CORPUS_TOKENS:
            by_metric[score.metric] = score
    return by_metric


def without_unknown(words: Sequence[str]) -> list[str]:
    """Returns references in which no unknown word equals a translation's."""
    return [sentence.replace(UNKNOWN, "\ufffd") for sentence in words]


def tokenizer_of(language: str) -> str:
    """Returns the name of sacrebleu's tokenizer for a language, by its tag.

    Without the packages of the right one it is `"char"`.

    >>> tokenizer_of("zh-CN"), tokenizer_of("th"), tokenizer_of("en")
    ('zh', 'char', '13a')
    """
    from sacrebleu.metrics import BLEU

    name = LANGUAGE_TOKENIZERS.get(re.split("[-_]", language.lower())[0], "13a")
    try:
        BLEU(tokenize=name)
    except RuntimeError:
        return "char"
    return name


def scores(
    tokenizer: Tokenizer,
    translations: Sequence[str],
    references: Sequence[str],
    language: str = "en",
    words: Sequence[str] | None = None,
    metrics: Sequence[Metric] = METRICS,
) -> list[Score]:
    """Returns each metric of translations twice, on corpus tokens and detokenised.

    On corpus tokens both sides are words as the vocabulary has them, so sacrebleu
    splits no further; those of WordPiece are lower-cased, without accents and split at
    punctuation. Detokenised, the translation is written as people write, and compared
    with the corpus' own sentence; accents, which WordPiece drops, count as errors, and
    case does not where the vocabulary has none. BLEU then splits text as the language
    asks, which its signature names; where words have no spaces between them, it does so
    on corpus tokens, too.

    Args:
        tokenizer: that of the translations.
        translations: words joined by spaces, as it decodes them.
        references: as the corpus has them.
        language: that of the translations, by its tag.
        words: the references as the tokenizer decodes them; None to encode them here.
        metrics: rows of `METRICS`; all by default.

    Raises:
        ValueError: unless there is a reference for each translation.

    >>> from reprt.data.tokenizers.wordpiece import WordPiece
    >>> pieces = ["[PAD]", "[UNK]", "[START]", "[END]", "a", "house", "."]
    >>> results = scores(WordPiece(pieces), ["a house ."], ["A house."])
    >>> [f"{each.metric} of {each.form}" for each in results[:2]]
    ['BLEU of corpus tokens', 'chrF of corpus tokens']
    """
    words = tokenizer.words(references) if words is None else words
    for texts in (references, words):
        check_aligned(
            len(translations), len(texts), "translations and references"
        )
    sacrebleu_tokenizer = tokenizer_of(language)
    spaces = sacrebleu_tokenizer == "13a" or language.lower().startswith("ko")
    corpus_tokenizer = "none" if spaces else sacrebleu_tokenizer
    words = without_unknown(words)
    plain = [tokenizer.detokenize(text) for text in translations]
    token_scores = _scores_of_form(
        CORPUS_TOKENS,
        translations,
        words,
        metrics,
        corpus_tokenizer,
        ignores_case=False,
    )
    sentence_scores = _scores_of_form(
        DETOKENISED,
        plain,
        references,
        metrics,
        sacrebleu_tokenizer,
        ignores_case=not tokenizer.keeps_case,
    )
    return token_scores + sentence_scores


def _scores_of_form(
    form: str,
    translations: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[Metric],
    tokenizer: str,
    *,
    ignores_case: bool,
) -> list[Score]:
    """Returns each metric of sentences in one form."""
    from sacrebleu import metrics as sacrebleu_metrics

    results = []
    for metric in metrics:
        scorer = metric.make(sacrebleu_metrics, tokenizer, ignores_case)
        result = scorer.corpus_score(list(translations), [list(references)])
        score = Score(
            metric=metric.name,
            form=form,
            value=result.score,
            signature=str(scorer.get_signature()),
        )
        results.append(score)
    return results

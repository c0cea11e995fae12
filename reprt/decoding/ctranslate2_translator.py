"""Translation by CTranslate2, with what `ctranslate2_export` wrote."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reprt.constants import PAD_ID
from reprt.data.batching import by_length
from reprt.data.tokenizers.base import Tokenizer
from reprt.data.tokenizers.registry import VOCABULARIES
from reprt.decoding.beam_search import BeamSearch, Hypothesis
from reprt.decoding.translator import Translator
from reprt.files import read_json
from reprt.loading import load_extra

NOTES = "translator.json"  # what CTranslate2's own files do not say
# CTranslate2 ends a search by another rule where there is no penalty at all.
LEAST_PENALTY = 1e-9
# Powers of lengths stay within float32 up to this logarithm.
SHORTEST_FIRST = 70.0


def ctranslate2() -> Any:
    """Returns the package; without it an `ImportError` says how to get it."""
    how = "pip install '.[train,ctranslate2]'."
    return load_extra("ctranslate2", f"Models for CTranslate2 need that package: {how}")


@dataclasses.dataclass(frozen=True)
class CTranslate2Model:
    """What `Translator` and its search ask of a model, for one of CTranslate2."""

    engine: Any  # the `ctranslate2.Translator`
    source_pieces: Sequence[str]
    target_ids: dict[str, int]  # of each piece
    longest_target: int
    padding_matters = False
    longest_source = math.inf  # its files do not say

    source_vocab_size = property(lambda self: len(self.source_pieces))
    target_vocab_size = property(lambda self: len(self.target_ids))


class CTranslate2Search(BeamSearch):
    """`BeamSearch`, done by CTranslate2.

    Except for rounding it finds what `BeamSearch` finds, with two differences. The
    probabilities of padding and start, which no translation takes, are divided among
    the other tokens. And CTranslate2 returns as many hypotheses as there are beams,
    and chooses them by a length penalty of its own, n^a for n tokens. The a is the
    nearest to our penalty at the source's length. Our penalty then ranks them again.

    Arguments are those of `BeamSearch`, the model a `CTranslate2Model`.
    """

    def __call__(self, source_ids) -> list[list[Hypothesis]]:
        pieces = self.model.source_pieces
        rows = [
            [pieces[index] for index in row if index != PAD_ID]
            for row in np.asarray(source_ids).tolist()
        ]
        found: list[list[Hypothesis]] = [[]] * len(rows)
        # A call has one limit and one penalty.
        for chosen in by_length([len(row) for row in rows], len(rows) or 1, True):
            batch = [rows[index] for index in chosen]
            for index, best in zip(chosen, self._found_for(batch), strict=True):
                found[index] = best
        return found

    def _found_for(self, rows):
        """The hypotheses of sources of one length."""
        length = len(rows[0])
        limit = int(self.most_tokens(np.int32(length)))
        # The slopes of ((5 + n) / 6)^alpha and n^a are equal at n = length.
        near = self.length_penalty * length / (5 + length)
        found = self._translated(rows, limit, max(near, LEAST_PENALTY))
        if self.beam_size == 1:
            return found
        # Hypotheses that the limit cuts short can displace finished ones. A penalty
        # that prefers the shortest brings those back.
        cut = [number for number, best in enumerate(found) if not best[0].ended]
        shortest = -SHORTEST_FIRST / math.log(limit + 1)
        again = self._translated([rows[number] for number in cut], limit, shortest)
        for number, best in zip(cut, again, strict=True):
            if best[0].ended:
                found[number] = best
        return found

    def _translated(self, rows, limit, penalty):
        results = self.model.engine.translate_batch(
            rows,
            beam_size=self.beam_size,
            num_hypotheses=self.beam_size,
            length_penalty=penalty,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=limit,
            return_scores=True,
            return_end_token=True,
        )
        return [self._ranked(result, penalty) for result in results]

    def _ranked(self, result, penalty):
        """The hypotheses of a sentence, by our own scores."""
        found = []
        for tokens, score in zip(result.hypotheses, result.scores, strict=True):
            ids = np.array([self.model.target_ids[token] for token in tokens])
            log_probability = score * len(ids) ** penalty
            ended = bool(ids[-1] == self.end_id)
            found.append(self._hypothesis(ids, ended, log_probability=log_probability))
        return sorted(found, key=lambda each: (not each.ended, -each.score))


class CTranslate2Translator(Translator):
    """A `Translator` whose model CTranslate2 runs.

    >>> from reprt.decoding.ctranslate2_translator import CTranslate2Translator
    >>> folder = "runs/mine/export/ctranslate2"
    >>> translator = CTranslate2Translator.load(folder, beam_size=4)  # doctest: +SKIP
    >>> translator("a menina dormiu .").text  # doctest: +SKIP
    'the girl slept.'
    """

    search_class = CTranslate2Search

    @classmethod
    def load(  # type: ignore[override]  # its options are the engine's
        cls, run: Path | str, engine: Mapping[str, Any] | None = None, **search
    ) -> "CTranslate2Translator":
        """Reads what `reprt export --to ctranslate2` wrote.

        Args:
            run: the folder.
            engine: arguments of `ctranslate2.Translator`, such as `intra_threads`.
            **search: arguments of `reprt.decoding.BeamSearch`; by default the export's.
        """
        folder = Path(run)
        try:
            notes = read_json(folder / NOTES)
        except OSError as error:
            raise ValueError(
                f"Expected {folder} to hold {NOTES} and a model of CTranslate2, as "
                f"`reprt export --to ctranslate2` writes them. Received: {error}."
            ) from error
        loaded = ctranslate2().Translator(str(folder), **(engine or {}))
        source, target = (_tokenizer(folder, side) for side in ("source", "target"))
        pieces, longest = source.vocabulary, notes["longest_target"]
        ids = {piece: index for index, piece in enumerate(target.vocabulary)}
        model = CTranslate2Model(loaded, pieces, ids, longest)
        asked = {**notes["search"], **search}
        return cls(model, source, target, notes["max_tokens"], asked)

    def attention(self, sentence):
        raise ValueError("CTranslate2 keeps no attention weights: load the run itself.")


def _tokenizer(folder, side) -> Tokenizer:
    kinds = [settings.tokenizer for settings in VOCABULARIES]
    paths = {folder / f"{side}{kind.ending}": kind for kind in kinds}
    return next(kind.read(path) for path, kind in paths.items() if path.exists())

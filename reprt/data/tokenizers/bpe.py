"""BPE by sentencepiece: words into subwords that keep capitals and accents.

The models are sentencepiece's own (Kudo and Richardson 2018), of the kind that Sennrich
et al. (2016) brought to translation: the most frequent pair of neighbours is merged
until there are enough pieces. Any tool that knows `.spm` files reads them.
"""

import functools
import hashlib
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pydantic

from reprt.constants import (
    END,
    END_ID,
    PAD,
    PAD_ID,
    START,
    START_ID,
    UNKNOWN,
    UNKNOWN_ID,
)
from reprt.data.corpora import ted
from reprt.data.corpora.corpus import Corpus
from reprt.data.rows import Rows
from reprt.data.tokenizers.base import (
    COVERAGE,
    Tokenizer,
    VocabularySettings,
    check_reserved,
    chunks,
    spaced_sample,
    tensorflow_text,
)
from reprt.data.tokenizers.learning import learnt_once
from reprt.loading import load_extra

MOST_SENTENCES = 2_000_000  # that one model is learnt on, in about 1 GiB
# Compatible characters and spaces of all kinds become one; case and accents stay.
NORMALISATION = "nmt_nfkc"


class BPE(Tokenizer):
    """Turns sentences into ids and back, with a model of sentencepiece.

    Spaces at the ends and repeated ones are dropped, and signs are normalised as the
    model says; all else comes back from ids, signs without a piece as `[UNK]`.

    Args:
        model: the bytes of the model. Its first four pieces are `[PAD] [UNK] [START]
            [END]`, and its start token, `bos_piece`, is `[START]` or a language's tag.

    Raises:
        ImportError: without sentencepiece, or tensorflow-text in `graph`.
        ValueError: if that is no such model.

    Example:

    >>> tokenizer = BPE(learn_model(["The houses", "the house"], 30))
    >>> [ids] = tokenizer.encode(["The house"])
    >>> [tokenizer.vocabulary[index] for index in ids]  # "▁" is a space
    ['[START]', '▁The', '▁house', '[END]']
    >>> tokenizer.decode([ids])
    ['The house']
    """

    ending = ".spm"
    keeps_case = True
    unit = "words between spaces"

    def __init__(self, model: bytes):
        self.model = model
        self._processor = _sentencepiece().SentencePieceProcessor()
        try:
            self._processor.load_from_serialized_proto(model)
        except RuntimeError as error:
            raise ValueError(
                f"Expected a model of sentencepiece. Received {len(model)} bytes that "
                f"are none: {error}"
            ) from error
        pieces = range(self._processor.get_piece_size())
        self.vocabulary = [self._processor.id_to_piece(index) for index in pieces]
        check_reserved(self.vocabulary)
        self.start_id = self._processor.bos_id()
        ends = self._processor.pad_id(), self._processor.eos_id()
        if ends != (PAD_ID, END_ID) or self.start_id < START_ID:
            raise ValueError(
                f"Expected a model whose tokens for padding and end are {PAD} and "
                f"{END}, and whose start token is among its pieces. Received the ids "
                f"{ends[0]}, {ends[1]} and {self.start_id}."
            )

    def __reduce__(self):
        return BPE, (self.model,)  # TensorFlow's tokenizer stays behind

    def digest(self) -> str:
        return hashlib.sha256(self.model).hexdigest()

    @classmethod
    def from_bytes(cls, data: bytes) -> "BPE":
        return cls(data)

    def to_bytes(self) -> bytes:
        """sentencepiece's own format."""
        return self.model

    def encode_chunks(
        self, sentences: Sequence[str], longest: int | None = None
    ) -> Iterator[Rows]:
        for chunk in chunks(sentences):
            rows = self._processor.encode(list(chunk), add_bos=True, add_eos=True)
            rows = [row[:longest] for row in rows]
            ids = np.fromiter(itertools.chain.from_iterable(rows), "int32")
            yield Rows(ids, [len(row) for row in rows])

    @functools.cached_property
    def graph(self):
        tf, text = tensorflow_text()
        return text.SentencepieceTokenizer(
            self.model,
            out_type=tf.int32,
            add_bos=True,
            add_eos=True,
            # In a SavedModel two models of one name are one.
            name=f"sentencepiece_{self.digest()}",
        )

    def graph_encode(self, sentences):
        return self.graph.tokenize(sentences)

    def graph_write(self, ids):
        return self.graph.detokenize(ids)

    def _joined(self, ids: list[int]) -> str:
        return self._processor.decode(ids)


class BPESettings(VocabularySettings):
    """BPE of each side, or one of both.

    Each model is learnt on at most two million sentences, at equal distances.
    """

    tokenizer = BPE
    name: Literal["bpe"] = "bpe"
    shared: bool = False
    """Whether both sides have one vocabulary, learnt on both texts."""
    tags: bool = False
    """Whether a sentence begins with its language instead of `[START]`: `<pt>`, `<en>`
    of `pt_to_en`. They have the ids 4 and 5. It needs `shared`."""

    @pydantic.model_validator(mode="after")
    def _one_vocabulary(self):
        if self.tags and not self.shared:
            raise ValueError(
                "Expected 'shared' in [vocabulary] to be true where 'tags' is: a tag "
                "tells apart the languages of one vocabulary. Received: false."
            )
        return self

    @property
    def joint(self) -> bool:
        return self.shared

    def learn(
        self,
        corpus: Corpus,
        folder: Path,
        progress: Callable[[str], None] = lambda text: None,
    ) -> tuple[BPE, BPE]:
        starts = self._starts(corpus.pair)
        tags = starts if self.tags else ()

        def of(sides, *texts):
            most = MOST_SENTENCES // len(texts)
            asked = self.size, tags, most, NORMALISATION, COVERAGE
            return learnt_once(
                BPE,
                lambda: BPE(
                    learn_model(
                        itertools.chain(
                            *(spaced_sample(text, most) for text in texts)
                        ),
                        self.size,
                        tags,
                    )
                ),
                f"bpe {asked}",
                texts,
                folder,
                lambda how: progress(f"vocabulary of the {sides}: {how}"),
            )

        train = corpus.train
        if self.shared:
            both = of("two sides", train.source, train.target)
            source, target = (BPE(_starting_with(both.model, each)) for each in starts)
            return source, target
        return of("source", train.source), of("target", train.target)

    def check(self, source: Tokenizer, target: Tokenizer, pair: str):
        if self.shared and source.vocabulary != target.vocabulary:
            raise ValueError(
                "expected one vocabulary for both sides, received two that differ"
            )
        expected = self._starts(pair)
        received = tuple(each.vocabulary[each.start_id] for each in (source, target))
        if received != expected:
            raise ValueError(
                f"expected sources to start with {expected[0]} and targets with "
                f"{expected[1]}, received {received[0]} and {received[1]}"
            )

    def _starts(self, pair: str) -> tuple[str, str]:
        """What sentences of source and target start with."""
        if not self.tags:
            return START, START
        source, target = ted.any_pair(pair).name.split("_to_")
        if source == target:
            raise ValueError(
                "Expected two languages where 'tags' in [vocabulary] is true. "
                f"Received: {pair!r}."
            )
        return f"<{source}>", f"<{target}>"


def learn_model(
    sentences: Iterable[str], size: int, tags: Sequence[str] = ()
) -> bytes:
    """Learns a BPE model; the same sentences always give the same one.

    Args:
        sentences: the sentences; all are in memory while it learns. Those of more than
            4,192 bytes are left out.
        size: the number of pieces; small texts give fewer.
        tags: control tokens that follow the reserved ones.

    Returns:
        The model, as sentencepiece stores it.

    Raises:
        ImportError: without sentencepiece.
        ValueError: if the text alone has more signs than `size`, or has none.

    Example:

    >>> model = learn_model(["The houses", "the house"], 30, ["<pt>", "<en>"])
    >>> BPE(model).vocabulary[2:6]
    ['[START]', '[END]', '<pt>', '<en>']
    """
    model = io.BytesIO()
    try:
        _sentencepiece().SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=COVERAGE,
            normalization_rule_name=NORMALISATION,
            pad_id=PAD_ID,
            unk_id=UNKNOWN_ID,
            bos_id=START_ID,
            eos_id=END_ID,
            pad_piece=PAD,
            unk_piece=UNKNOWN,
            bos_piece=START,
            eos_piece=END,
            unk_surface=UNKNOWN,
            control_symbols=list(tags),
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2] or str(error)
        raise ValueError(
            f"Expected 'size' in [vocabulary] to be one that sentencepiece can learn "
            f"of this text. Received: {size}. {reason}"
        ) from error
    return model.getvalue()


def _starting_with(model: bytes, start: str) -> bytes:
    """The same model, except for the start token of its sentences."""
    from sentencepiece import sentencepiece_model_pb2 as messages

    proto = messages.ModelProto.FromString(model)  # type: ignore[attr-defined]
    proto.trainer_spec.bos_piece = start
    return proto.SerializeToString(deterministic=True)


def _sentencepiece():
    return load_extra(
        "sentencepiece",
        "BPE vocabularies need sentencepiece: pip install '.[train]'.",
    )

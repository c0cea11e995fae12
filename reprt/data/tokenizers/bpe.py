"""BPE by sentencepiece: words into subwords that keep capitals and accents.

The models are sentencepiece's own (Kudo and Richardson 2018), of the kind that Sennrich
et al. (2016) brought to translation: the most frequent pair of neighbours is merged
until there are enough pieces. Any tool that knows `.spm` files reads them.
"""

import functools
import io
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pydantic

from reprt.constants import (
    END_ID,
    PAD_ID,
    RESERVED,
    START_ID,
    UNKNOWN_ID,
)
from reprt.data.rows import Rows
from reprt.data.tokenizers.tokenizer import (
    COVERAGE,
    Tokenizer,
    VocabularySettings,
    check_reserved,
    tensorflow_text,
)
from reprt.imports import load_extra
from reprt.progress import ignore_progress

# Compatible characters and spaces of all kinds become one; case and accents stay.
NORMALISATION = "nmt_nfkc"


class BPE(Tokenizer):
    """Turns sentences into ids and back, with a model of sentencepiece.

    Spaces at the ends and repeated ones are dropped, and characters are normalised
    as the model says; all else comes back from ids, characters without a piece as
    `[UNK]`. The model's start token, `bos_piece`, is `[START]` or a language's tag.

    >>> tokenizer = BPE(learn_model(["The houses", "the house"], 30))
    >>> [ids] = tokenizer.encode(["The house"])
    >>> [tokenizer.vocabulary[index] for index in ids]  # "▁" is a space
    ['[START]', '▁The', '▁house', '[END]']
    >>> tokenizer.decode([ids])
    ['The house']
    """

    ending = ".spm"
    keeps_case = True

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
        self.vocabulary = tuple(map(self._processor.id_to_piece, pieces))
        check_reserved(self.vocabulary)
        self.start_id = self._processor.bos_id()

    @classmethod
    def from_bytes(cls, data: bytes) -> "BPE":
        return cls(data)

    def to_bytes(self) -> bytes:
        return self.model

    def _encode(self, sentences, max_tokens):
        rows = self._processor.encode(
            sentences,
            add_bos=True,
            add_eos=True,
            num_threads=1,
        )
        return Rows.of([np.array(row[:max_tokens], "int32") for row in rows])

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

    def graph_detokenize(self, ids):
        return self.graph.detokenize(ids)

    def _join(self, ids):
        return self._processor.decode(ids)


class BPESettings(VocabularySettings):
    """BPE of each side, or one of both."""

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

    def learn(self, corpus, folder, progress=ignore_progress):
        source, target = super().learn(corpus, folder, progress)
        if not self.tags:
            return source, target
        tokenizers = []
        for side, tag in zip((source, target), _tags(corpus.pair)):
            if tag not in side.vocabulary:
                raise ValueError(
                    f"Expected the vocabulary of {self.from_run} to have the piece "
                    f"{tag}, as tags = true in [vocabulary] says. Received one "
                    "without it."
                )
            tokenizers.append(BPE(_set_start_token(side.to_bytes(), tag)))
        return tokenizers[0], tokenizers[1]

    def _identity(self, pair):
        tags = _tags(pair) if self.tags else ()
        settings = self.size, tags, self.sentences, NORMALISATION, COVERAGE
        return f"bpe {settings}"

    def _learn(self, sentences, pair):
        tags = _tags(pair) if self.tags else ()
        return BPE(learn_model(sentences, self.size, tags))


def _tags(pair: str) -> tuple[str, str]:
    """What sentences of source and target begin with."""
    source, target = pair.split("_to_")
    return f"<{source}>", f"<{target}>"


def learn_model(
    sentences: Iterable[str],
    size: int,
    tags: Sequence[str] = (),
) -> bytes:
    """Learns a BPE model; the same sentences always give the same one.

    All sentences are in memory while it learns. Those of more than 4,192 bytes are left
    out. Small texts give fewer pieces than `size`. Tags are control tokens that follow
    the reserved ones. A text of more characters than `size`, or of none, is a
    `ValueError`.
    """
    model = io.BytesIO()
    pad, unknown, start, end = RESERVED
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
            pad_piece=pad,
            unk_piece=unknown,
            bos_piece=start,
            eos_piece=end,
            unk_surface=unknown,
            control_symbols=list(tags),
            # More are no faster, and leave memory of their own behind.
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2] or str(error)
        raise ValueError(
            f"Expected 'size' in [vocabulary] to be one that sentencepiece can learn "
            f"of this text. Received: {size}. {reason}"
        ) from error
    proto = _parse(model.getvalue())
    # How a model was learnt decides nothing.
    proto.trainer_spec.ClearField("num_threads")
    return proto.SerializeToString(deterministic=True)


def _set_start_token(model, start) -> bytes:
    """The same model, except for the start token of its sentences."""
    proto = _parse(model)
    proto.trainer_spec.bos_piece = start
    return proto.SerializeToString(deterministic=True)


def _parse(model: bytes):
    from sentencepiece import sentencepiece_model_pb2 as messages

    return messages.ModelProto.FromString(model)  # type: ignore[attr-defined]


def _sentencepiece():
    need = "BPE vocabularies need sentencepiece: pip install '.[train]'."
    return load_extra("sentencepiece", need)

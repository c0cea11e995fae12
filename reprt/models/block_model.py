"""What the models made of Transformer blocks share."""

from typing import Any, NamedTuple

from keras import ops

from reprt.layers import TokenAndPositionEmbedding
from reprt.layers.dtypes import indices
from reprt.layers.feed_forward import GATED
from reprt.models import parts
from reprt.models.base import TranslationModel

# The settings that are arguments of `Encoder` and `Decoder`.
OF_STACKS = {
    "num_blocks",
    "num_heads",
    "key_dim",
    "feed_forward_dim",
    "value_dim",
    "dropout",
    "dropout_places",
    "norm_place",
    "layer_norm_epsilon",
    "layer_norm_gains",
    "attention_bias",
    "query_key_norm",
    "activation",
}


class CachedState(NamedTuple):
    """What hypotheses are to a model that reads each token once."""

    blocks: Any
    """The keys and values of each block."""
    context: Any
    """What the embedding of the next token needs of the tokens before."""


class RecomputedState(NamedTuple):
    """What hypotheses are to a model that reads all tokens again at each step."""

    target_ids: Any
    """Integers `(hypotheses, capacity)`, 0 where there is no token yet."""
    source: Any
    """The source of each hypothesis, as `encode` returns it."""


class BlockModel(TranslationModel):
    """A model of embeddings and stacks of blocks, by its `TransformerSettings`."""

    _recomputes: bool
    """Whether each step decodes all tokens again, because a new one changes earlier
    ones or cannot be embedded without them."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # A class attribute would hide on PyTorch the layer that is set later.
        self.output_dense = self.output_projection = None

    def _embedding(self, side, vocab_size, name, table=None):
        """What embeds one side of a Transformer, "encoder" or "decoder"."""
        config, dtype = self.config, self.dtype_policy
        norm = config.norm_of(side)
        return TokenAndPositionEmbedding(
            vocab_size,
            config.embedding_dim,
            parts.position(config, side, dtype=dtype, name="positional"),
            parts.embedding_norm(config, side, dtype=dtype, name=norm),
            scale=config.scale,
            dropout=config.rate("embeddings"),
            token_dropout=config.rate("values"),
            embedding=table,
            dtype=dtype,
            name=name,
        )

    def _stack(self, kind, embedding, final_norm):
        positional = embedding.positional
        return kind(
            **self.config.model_dump(include=OF_STACKS),
            position=None if positional.on_entry else positional,
            final_norm=final_norm,
            dtype=self.dtype_policy,
            name=kind.__name__.lower(),
        )

    def _layout(self, mask, packing):
        """What tells sentences apart: a padding mask, or the packed tokens' layout."""
        if packing is None:
            return mask
        return packing.layout(self.config.num_heads)

    def _value(self, tokens):
        """What the blocks are given to weigh; None means the key's own sequence."""
        return None if self.config.value == "states" else tokens

    def extend(self, prefixes, tokens):
        state = prefixes.state
        if self._recomputes:
            target_ids = ops.pad(state.target_ids, ((0, 0), (0, tokens)))
            state = state._replace(target_ids=target_ids)
        else:
            blocks = tuple(block.extend(tokens) for block in state.blocks)
            state = state._replace(blocks=blocks)
        return prefixes._replace(state=state)

    def _project(self, states):
        if self.output_projection is None:
            return states
        return self.output_projection(states)

    def _multiply_adds_of(self, embedding, attentions, tokens, targets):
        """The multiply-adds of all blocks and of the logits of the targets.

        With p heads of key width r and value width q, on states of width w and values
        of width v, attention of a queries to b keys takes

            p (a (w r + q w) + b (w r + v q) + a b (r + q))

        An attention is the pair of a and b; the tokens go through the feed-forward
        networks, which have two matrices, or three where they are gated.
        """
        config = self.config
        _, states_shape = embedding.compute_output_shape((1, 1))
        w = states_shape[-1]
        v = config.embedding_dim if config.value == "tokens" else w
        r, q = config.key_dim, config.value_dim
        head = 0
        for a, b in attentions:
            head += a * (w * r + q * w) + b * (w * r + v * q) + a * b * (r + q)
        matrices = 3 if config.activation in GATED else 2
        feed_forward = tokens * matrices * w * config.feed_forward_dim
        block = config.num_heads * head + feed_forward
        output = w * self.target_vocab_size
        if self.output_projection is not None:
            output = config.embedding_dim * (w + self.target_vocab_size)
        return config.num_blocks * block + targets * output

    @staticmethod
    def _write_token(state: RecomputedState, ids, position) -> RecomputedState:
        """The state with a further token of each hypothesis."""
        target_ids = state.target_ids
        is_place = ops.equal(indices(ops.shape(target_ids)[1]), position)
        target_ids = ops.where(is_place, ids[:, None], target_ids)
        return state._replace(target_ids=target_ids)

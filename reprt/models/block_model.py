"""What the models made of Transformer blocks share."""

from keras import ops

from reprt.layers.feed_forward import GATED
from reprt.layers.precision import indices
from reprt.models import parts
from reprt.models.base import TranslationModel


class BlockModel(TranslationModel):
    """A model of embeddings and stacks of blocks, by its `TransformerSettings`."""

    _recomputes: bool
    """Whether a new token changes earlier ones: each step then decodes all again."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # A class attribute would hide on PyTorch the layer that is set later.
        self.output_dense = self.output_projection = None

    def _embedding(self, side, vocab_size, name, table=None):
        """What embeds one side of a Transformer, "encoder" or "decoder"."""
        policy = self.dtype_policy
        return parts.embedding(
            self.config, side, vocab_size, table, dtype=policy, name=name
        )

    def _stack(self, kind, embedding, final_norm):
        return parts.stack(
            kind,
            self.config,
            embedding.positional,
            final_norm=final_norm,
            dtype=self.dtype_policy,
            name=kind.__name__.lower(),
        )

    def _layout(self, mask, packing):
        """What tells sentences apart: a padding mask, or the packed tokens' layout."""
        return (
            mask if packing is None else packing.layout(self.config.num_heads)
        )

    def _value(self, tokens):
        """What the blocks are given to weigh; None means the key's own sequence."""
        return None if self.config.value == "states" else tokens

    def extended(self, prefixes, tokens):
        kept, of_sequence = prefixes.own
        if self._recomputes:
            kept = ops.pad(kept, ((0, 0), (0, tokens)))
        else:
            kept = tuple(block.extended(tokens) for block in kept)
        return prefixes._replace(own=(kept, of_sequence))

    def _projected(self, states):
        if self.output_projection is None:
            return states
        return self.output_projection(states)

    def _products(self, embedding, attentions, tokens, targets):
        """The multiply-adds of all blocks and of the logits of the targets.

        With p heads of key width r and value width q, on states of width w and values
        of width v, attention of a queries to b keys takes

            p (a (w r + q w) + b (w r + v q) + a b (r + q))

        An attention is the pair of a and b; the tokens go through the feed-forward
        networks, which have two matrices, or three where they are gated.
        """
        c, width = self.config, embedding.compute_output_shape((1, 1))[1][-1]
        r, q = c.key_dim, c.value_dim
        v = c.embedding_dim if c.value == "tokens" else width
        heads = c.num_heads * sum(
            a * width * (r + q) + b * (width * r + v * q) + a * b * (r + q)
            for a, b in attentions
        )
        matrices = 3 if c.activation in GATED else 2
        feed_forward = matrices * width * c.feed_forward_dim
        blocks = c.num_blocks * (heads + tokens * feed_forward)
        output = width * self.target_vocab_size
        if self.output_projection is not None:
            output = c.embedding_dim * (width + self.target_vocab_size)
        return blocks + targets * output

    @staticmethod
    def _written(prefix, ids, position):
        """A prefix `(hypotheses, capacity)` with a token of each at a position."""
        here = ops.equal(indices(ops.shape(prefix)[1]), position)
        return ops.where(here, ids[:, None], prefix)

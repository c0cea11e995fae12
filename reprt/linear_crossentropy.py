"""The masked cross-entropy of a projection whose logits are never all in memory."""

from keras import ops

from reprt.gradients import custom_gradient
from reprt.losses import softmax_and_normalizer

CHUNKS = 8


def linear_crossentropy(states, kernel, bias, labels, weights, smoothing=0.0):
    """Total cross-entropy of `states @ kernel + bias`, and which labels are likeliest.

    The numbers are those of `MaskedCrossentropy` on the logits, and of their maximum.
    Logits are by far the largest tensors of a training step, so the tokens are taken in
    a few chunks. Each chunk's logits give its loss and its gradients at once, and are
    gone before the next chunk's are made. Without gradients, use the logits.

        loss = Σ −w q · log p,  p = softmax(h W + b),  q = (1 − ε) onehot(y) + ε / V
        dh = w (p − q) Wᵀ,  dW = hᵀ w (p − q),  db = Σ w (p − q)

    Labels q are smoothed by ε over all V ids; logs have the loss at ε = 0.

    Args:
        states: tensor `(tokens, width)`.
        kernel: tensor `(width, vocab_size)`.
        bias: tensor `(vocab_size,)`, or None.
        labels: integer tensor `(tokens,)`.
        weights: float32 tensor `(tokens,)`, what each token counts, 0 for padding.
        smoothing: ε, a number. Defaults to 0.

    Returns:
        The total loss in nats, through which gradients flow, and the same without
        smoothing, float32 scalars; and whether no token is likelier than the label,
        `(tokens,)` booleans.

    >>> from keras import ops
    >>> from reprt.linear_crossentropy import linear_crossentropy
    >>> zeros = ops.zeros((2, 3)), ops.zeros((3, 4)), ops.zeros(4)
    >>> labels, weights = ops.array([3, 0]), ops.array([1.0, 0.0])
    >>> loss, _, hits = linear_crossentropy(*zeros, labels, weights)
    >>> round(float(loss), 4)  # ln 4
    1.3863

    Reference: section 3.1 of the paper.
    """
    if bias is None:
        bias = ops.zeros(kernel.shape[1], kernel.dtype)

    @custom_gradient
    def crossentropy(states, kernel, bias):
        tokens, vocab_size = ops.shape(states)[0], kernel.shape[1]
        size = -(-tokens // CHUNKS)
        padding = size * CHUNKS - tokens
        # Chunks leave the queue at its front, and their gradients join its end. So no
        # chunk can start before the one before it is done.
        queue = ops.pad(states, ((0, padding), (0, 0)))
        padded_labels = ops.cast(ops.pad(labels, ((0, padding),)), "int32")
        padded_weights = ops.pad(weights, ((0, padding),))
        hits = []
        loss = uniform_loss = kernel_gradient = bias_gradient = 0.0
        for chunk in range(CHUNKS):
            h, queue = queue[:size], queue[size:]
            rows = slice(chunk * size, (chunk + 1) * size)
            y, weight = padded_labels[rows], padded_weights[rows]
            logits = ops.cast(ops.matmul(h, kernel) + bias, "float32")
            p, normalizer, largest = softmax_and_normalizer(logits)
            places = ops.arange(size, dtype="int32") * vocab_size + y
            score = ops.take(ops.reshape(logits, (-1,)), places)
            hits.append(score >= largest[:, 0])
            loss += ops.sum(weight * (normalizer[:, 0] - score))
            if smoothing:
                mean_score = ops.mean(logits, axis=-1)
                uniform_loss += ops.sum(
                    weight * (normalizer[:, 0] - mean_score)
                )
                # The part of q that all ids have.
                p -= smoothing / vocab_size

            p = ops.cast(p, h.dtype)
            weight = ops.cast(weight, h.dtype)[:, None]
            h_gradient = weight * ops.matmul(p, ops.transpose(kernel))
            queue = ops.concatenate([queue, h_gradient])
            products = ops.matmul(ops.transpose(weight * h), p)
            kernel_gradient += ops.cast(products, "float32")
            sums = ops.matmul(ops.transpose(weight), p)[0]
            bias_gradient += ops.cast(sums, "float32")

        # p − q is never made: its products are two products' difference. The label's
        # sums over tokens stay in float32: in half precision a sum of many ones stands
        # still.
        label_weights = (1 - smoothing) * weights[:, None]
        columns = ops.take(ops.transpose(kernel), labels, axis=0)
        states_gradient = queue[:tokens]
        states_gradient -= ops.cast(label_weights, columns.dtype) * columns
        label_states = label_weights * ops.cast(states, "float32")
        label_sums = ops.segment_sum(label_states, labels, vocab_size)
        kernel_gradient -= ops.transpose(label_sums)
        bias_gradient -= ops.segment_sum(
            label_weights[:, 0], labels, vocab_size
        )
        smoothed = (1 - smoothing) * loss + smoothing * uniform_loss

        def gradient(*upstream):
            # JAX gives the gradients of all results as one tuple.
            if len(upstream) == 1:
                upstream = upstream[0]
            scale = upstream[0]
            return (
                ops.cast(
                    scale * ops.cast(states_gradient, scale.dtype), states.dtype
                ),
                ops.cast(scale * kernel_gradient, kernel.dtype),
                ops.cast(scale * bias_gradient, bias.dtype),
            )

        return (smoothed, loss, ops.concatenate(hits)[:tokens]), gradient

    return crossentropy(states, kernel, bias)

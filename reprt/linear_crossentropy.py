"""The masked cross-entropy of a projection whose logits are never all in memory."""

from keras import ops

from reprt.gradients import custom_gradient
from reprt.losses import softmax_and_normalizer

CHUNKS = 8


def linear_crossentropy(states, kernel, bias, labels, weights, smoothing=0.0):
    """Total cross-entropy of `states @ kernel + bias`, and the likeliest tokens.

    The numbers are those of `MaskedCrossentropy` on the logits, and of their `argmax`.
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
        smoothing, float32 scalars; and the most likely ids, `(tokens,)` integers.

    >>> from keras import ops
    >>> from reprt.linear_crossentropy import linear_crossentropy
    >>> zeros = ops.zeros((2, 3)), ops.zeros((3, 4)), ops.zeros(4)
    >>> labels, weights = ops.array([3, 0]), ops.array([1.0, 0.0])
    >>> loss, _, likeliest = linear_crossentropy(*zeros, labels, weights)
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
        padded_labels = ops.pad(labels, ((0, padding),))
        padded_weights = ops.pad(weights, ((0, padding),))
        likeliest = []
        loss = uniform_loss = kernel_gradient = bias_gradient = 0.0
        for chunk in range(CHUNKS):
            h, queue = queue[:size], queue[size:]
            rows = slice(chunk * size, (chunk + 1) * size)
            y, weight = padded_labels[rows], padded_weights[rows]
            logits = ops.cast(ops.matmul(h, kernel) + bias, "float32")
            likeliest.append(ops.cast(ops.argmax(logits, axis=-1), "int32"))
            p, normalizer = softmax_and_normalizer(logits)
            normalizer = normalizer[:, 0]
            score = ops.take_along_axis(logits, y[:, None], axis=1)[:, 0]
            loss += ops.sum(weight * (normalizer - score))
            if smoothing:
                mean_score = ops.mean(logits, axis=-1)
                uniform_loss += ops.sum(weight * (normalizer - mean_score))
                # The part of q that all ids have.
                p -= smoothing / vocab_size

            # p − q is never made: its products are two products' difference. The
            # label's sums over tokens stay in float32: in half precision a sum of
            # many ones stands still.
            p = ops.cast(p, h.dtype)
            label_weight = (1 - smoothing) * weight
            weight = ops.cast(weight, h.dtype)[:, None]

            label_kernel = ops.transpose(ops.take(kernel, y, axis=1))
            h_gradient = weight * ops.matmul(p, ops.transpose(kernel))
            h_gradient -= (
                ops.cast(label_weight[:, None], h.dtype) * label_kernel
            )
            queue = ops.concatenate([queue, h_gradient])

            label_states = label_weight[:, None] * ops.cast(h, "float32")
            label_sum = ops.segment_sum(label_states, y, vocab_size)
            total = ops.matmul(ops.transpose(weight * h), p)
            total = ops.cast(total, "float32")
            kernel_gradient += total - ops.transpose(label_sum)

            label_sum = ops.segment_sum(label_weight, y, vocab_size)
            total = ops.matmul(ops.transpose(weight), p)[0]
            bias_gradient += ops.cast(total, "float32") - label_sum
        states_gradient = queue[:tokens]
        smoothed = (1 - smoothing) * loss + smoothing * uniform_loss

        def gradient(*upstream):
            # PyTorch's backend gives the gradients of all results as one.
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

        return (smoothed, loss, ops.concatenate(likeliest)[:tokens]), gradient

    return crossentropy(states, kernel, bias)

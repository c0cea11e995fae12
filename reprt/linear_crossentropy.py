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
        loss, uniform_loss, hits, gradients = _over_chunks(
            states, kernel, bias, labels, weights, smoothing
        )
        label_gradients = _of_labels(
            states, kernel, labels, (1 - smoothing) * weights
        )
        # p − q is never made: its products are the difference of two products.
        gradients = list(map(ops.subtract, gradients, label_gradients))
        smoothed = (1 - smoothing) * loss + smoothing * uniform_loss
        dtypes = states.dtype, kernel.dtype, bias.dtype

        def gradient(*upstream):
            # JAX gives the gradients of all results as one tuple.
            if len(upstream) == 1:
                upstream = upstream[0]
            scale = upstream[0]
            scaled = []
            for total, dtype in zip(gradients, dtypes, strict=True):
                total = scale * ops.cast(total, scale.dtype)
                scaled.append(ops.cast(total, dtype))
            return tuple(scaled)

        return (smoothed, loss, hits), gradient

    return crossentropy(states, kernel, bias)


def _over_chunks(states, kernel, bias, labels, weights, smoothing):
    """Sums over the tokens, chunk by chunk.

    Returns:
        The loss without smoothing, the loss of labels that are uniform over all ids,
        whether each token's label is the likeliest, and the gradients of states, kernel
        and bias without the label's part of q: products with w (p − ε / V).
    """
    tokens = ops.shape(states)[0]
    size = -(-tokens // CHUNKS)
    padding = size * CHUNKS - tokens
    # Chunks leave the queue at its front, and their gradients join its end. So no chunk
    # can start before the one before it is done.
    queue = ops.pad(states, ((0, padding), (0, 0)))
    labels = ops.cast(ops.pad(labels, ((0, padding),)), "int32")
    weights = ops.pad(weights, ((0, padding),))
    hits = []
    loss = uniform_loss = kernel_gradient = bias_gradient = 0.0
    for chunk in range(CHUNKS):
        h, queue = queue[:size], queue[size:]
        rows = slice(chunk * size, (chunk + 1) * size)
        weight = weights[rows]
        logits = ops.cast(ops.matmul(h, kernel) + bias, "float32")
        p, normalizer, largest = softmax_and_normalizer(logits)
        scores = _at_labels(logits, labels[rows])
        hits.append(scores >= largest[:, 0])
        loss += ops.sum(weight * (normalizer[:, 0] - scores))
        if smoothing:
            mean_scores = ops.mean(logits, axis=-1)
            uniform_loss += ops.sum(weight * (normalizer[:, 0] - mean_scores))
            p -= smoothing / kernel.shape[1]

        p = ops.cast(p, h.dtype)
        weight = ops.cast(weight, h.dtype)[:, None]
        h_gradient = weight * ops.matmul(p, ops.transpose(kernel))
        queue = ops.concatenate([queue, h_gradient])
        products = ops.matmul(ops.transpose(weight * h), p)
        kernel_gradient += ops.cast(products, "float32")
        sums = ops.matmul(ops.transpose(weight), p)[0]
        bias_gradient += ops.cast(sums, "float32")
    gradients = queue[:tokens], kernel_gradient, bias_gradient
    return loss, uniform_loss, ops.concatenate(hits)[:tokens], gradients


def _at_labels(logits, labels):
    """Each token's logit of its label, `(tokens,)`."""
    tokens, vocab_size = ops.shape(logits)
    places = ops.arange(tokens, dtype="int32") * vocab_size + labels
    return ops.take(ops.reshape(logits, (-1,)), places)


def _of_labels(states, kernel, labels, weights):
    """The part of the gradients that is the labels': products with w onehot(y)."""
    vocab_size = kernel.shape[1]
    columns = ops.take(ops.transpose(kernel), labels, axis=0)
    states_gradient = ops.cast(weights[:, None], columns.dtype) * columns
    # Sums over tokens stay in float32: in half precision a sum of many ones stands
    # still.
    label_states = weights[:, None] * ops.cast(states, "float32")
    kernel_gradient = ops.transpose(
        ops.segment_sum(label_states, labels, vocab_size)
    )
    bias_gradient = ops.segment_sum(weights, labels, vocab_size)
    return states_gradient, kernel_gradient, bias_gradient

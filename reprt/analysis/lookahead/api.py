"""The audit: which model, which ids, which modes."""

import numpy as np

from reprt.analysis.lookahead.adapters import (
    Subject,
    adapt,
    logits_in,
    to_array,
)
from reprt.analysis.lookahead.labels import check_labels
from reprt.analysis.lookahead.methods import (
    ROUNDING,
    Sentences,
    error_summary,
    examine,
)
from reprt.analysis.lookahead.report import Audit
from reprt.constants import RESERVED, check_choice

# Other packages' vocabularies reserve as many ids.
RESERVED_IDS = len(RESERVED)
# The default number of target tokens.
TOKENS = 12


def audit(
    model,
    source_vocab_size=None,
    target_vocab_size=None,
    length=None,
    seed=0,
    *,
    vocab_size=None,
    training=False,
    prompt=0,
    call=None,
    precision=None,
    batch=None,
) -> Audit:
    """Finds out whether a model sees target tokens that search has yet to produce.

        depends(t, u) = logits[t] change with target token u, for u > t

    It uses three methods on random sentences without padding. It replaces each token
    by others. It cuts the target after each position, as search does. It replaces the
    other sentences of a batch, which should change nothing.

    Rounding does not count: changes up to 1e-5 of the largest |logit|, or up to three
    times what other sentences of the batch change if that is rounding. Cut targets are
    computed in another order, so that truncation allows for changes up to 1e-4 of the
    largest |logit|, 1e-2 in float16 or on a GPU and 8e-2 in bfloat16.

    Audit a trained model: behind weights that are zero, as some are at first, no
    dependence is seen.

    Args:
        model: a Keras model, a PyTorch module, a model of Hugging Face, or a function,
            of JAX or any other. It takes ids of the target, integers `(batch,
            targets)`, or of a source and a target. It returns logits `(batch, targets,
            vocabulary)`, alone, as `.logits`, or in a tuple or dictionary, where no
            other output of the vocabulary's size has three axes. A function
            is given NumPy arrays, or tensors of its framework if it takes no arrays. A
            Keras model takes `(source_ids, target_ids)`; a functional one with a single
            `keras.Input` is a language model, and so is a subclassed one if
            `vocab_size` is given. A model of Hugging Face gets a mask of ones, and
            `use_cache=False`.
        source_vocab_size: number of source ids, padding (0) included. Defaults to the
            model's attribute or its configuration's.
        target_vocab_size: the same for the target. Defaults to the model's attribute,
            its configuration's or else the number of logits.
        length: number of target tokens, at least 3. Defaults to what the model is
            built for, or else 12.
        seed: of the random sentences.
        vocab_size: number of ids, of a language model, or of both sides of a function
            of two arguments.
        training: whether to audit the model in training as well. Rates of dropout are
            set to 0, other random numbers of PyTorch's generator and of Keras' layers
            are the same in each call, and afterwards rates, moving averages and seeds
            are what they were. A function, or `call`, needs an argument `training`.
        prompt: how many of the target's first tokens may see each other, as in a model
            with a bidirectional prefix.
        call: how to call the model, where that cannot be worked out: a function of the
            model and its ids, as tensors of its framework, such as
            `lambda model, ids: model(ids)["scores"]`.
        precision: the coarsest type that the model computes in, such as `"bfloat16"`.
            Defaults to that of its weights or layers; a function's is that of its
            logits.
        batch: inputs and labels of your own, as for `check_labels`. The report then
            says whether a position sees its own label.

    Raises:
        ValueError: if the model cannot be called so; if its logits are not finite,
            differ from call to call or depend on no target token; if a vocabulary's
            size is unknown, or too small for `length` different tokens.

    Example: the published model looks ahead, its variant with prefix statistics does
    not. A function that adds each token's successor looks ahead, too.

    >>> import numpy as np
    >>> import reprt
    >>> from reprt.analysis import audit
    >>> audit(reprt.models.build("repe", 30, 30)).looks_ahead
    True
    >>> prefix = reprt.models.build("repe", 30, 30, decoder_statistics="prefix")
    >>> audit(prefix).looks_ahead
    False
    >>> one_hot = np.eye(30)
    >>> def peek(ids):
    ...     return one_hot[ids] + one_hot[np.roll(ids, -1, axis=1)]
    >>> audit(peek, vocab_size=30).first_offending["perturbation"]
    ((0, 1), (1, 2), (2, 3))
    """
    subject = adapt(model, call)
    pair = subject.pair
    has_source = source_vocab_size or subject.source_vocab_size
    if pair is None:
        # Only its source tells a translation model from a language model.
        pair = bool(has_source) or vocab_size is None
    if subject.inputs and not has_source:
        raise ValueError(
            "Expected `source_vocab_size` (--source-vocab) of a model that takes a "
            "source and a target, or `call` for a language model with another input. "
            f"Received: a model of the inputs {' and '.join(subject.inputs)}."
        )
    source_vocab_size = (
        source_vocab_size or vocab_size or subject.source_vocab_size
    )
    target_vocab_size = (
        target_vocab_size or vocab_size or subject.target_vocab_size
    )
    if pair and not source_vocab_size:
        raise ValueError(
            "Expected `source_vocab_size`, as the model has no attribute of that name. "
            "Give it as an argument, or by --source-vocab: the number of source ids, "
            "padding included. For a language model give `vocab_size`, or --vocab."
        )
    if precision is not None:
        check_choice(("float64", "float32", *ROUNDING), precision=precision)
    sources, targets = _lengths(subject, length)
    # Any vocabulary has an id 1.
    ones = np.ones((1, sources), "int32"), np.ones((1, targets), "int32")
    known_size = target_vocab_size
    with subject.mode(False):
        sample = _output(subject, ones if pair else ones[1:], False, known_size)
    target_vocab_size = known_size or sample.shape[-1]
    if targets < 3 or target_vocab_size < 2 + targets:
        raise ValueError(
            "Expected a target of at least 3 tokens, and a vocabulary of padding, as "
            "many different tokens and one to put in their place. Received: "
            f"length={targets}, target_vocab_size={target_vocab_size}."
        )
    if not 0 <= prompt <= targets - 2:
        raise ValueError(
            f"Expected `prompt` to be 0 to {targets - 2}, two tokens fewer than the "
            f"target has. Received: prompt={prompt}."
        )
    source_ids = _real_ids(source_vocab_size, 1 + targets) if pair else None
    target_ids = _real_ids(target_vocab_size, 1 + targets)
    precisions = {precision} if precision else _precisions(subject, sample)

    def in_mode(is_training):
        """Returns what the model does while training, or else when it is used."""
        lengths = sources, targets
        generator = np.random.default_rng(seed)
        sentences = Sentences(source_ids, target_ids, lengths, generator)
        with subject.mode(is_training) as rewind:

            def logits(source, target, draw):
                rewind(draw)
                ids = (target,) if source is None else (source, target)
                output = _output(subject, ids, is_training, known_size)
                return to_array(output)

            return vars(examine(logits, sentences, precisions, prompt))

    labels = None
    if batch is not None:
        if len(batch) != 2:
            raise ValueError(
                "Expected `batch` to be the ids that the decoder is given and its "
                f"labels. Received: {len(batch)} parts."
            )
        labels = check_labels(*batch)
    options = {"name": subject.name, "prompt": prompt, "labels": labels}
    if training:
        options["training"] = Audit(**in_mode(True), **options)
    return Audit(**in_mode(False), **options)


def assert_causal(model, **options):
    """Raises an `AssertionError` with the report if a model looks ahead.

    Args:
        model: as for `audit`.
        options: as for `audit`, such as `vocab_size` and `training`.

    Example: a line for your own tests.

    >>> import numpy as np
    >>> from reprt.analysis import assert_causal
    >>> assert_causal(lambda ids: np.eye(30)[ids], vocab_size=30)
    """
    report = audit(model, **options)
    # Not the statement, which `python -O` leaves out.
    if report.looks_ahead:
        raise AssertionError(str(report))


def _lengths(subject, length):
    """Sources and targets: `length`'s, or else those that the model is built for."""
    # Different from each other, so that inputs in the wrong order are noticed.
    if length is not None:
        return length + 2, length
    longest_source, longest_target = subject.longest
    sources = min(TOKENS + 2, longest_source)
    targets = min(TOKENS, sources - 1, longest_target)
    fixed_source, fixed_target = subject.lengths
    return fixed_source or sources, fixed_target or targets


def _real_ids(vocab_size, enough):
    """Ids that stand for words; if those are too few, all but padding."""
    ids = np.arange(1, vocab_size, dtype="int32")
    words = ids[RESERVED_IDS - 1 :]
    return words if len(words) >= enough else ids


def _precisions(subject, sample):
    """Those that a model computes in. A function shows that of its logits only."""
    if subject.precisions:
        return subject.precisions
    precisions = {kind for kind in ROUNDING if kind in str(sample.dtype)}
    if "cpu" not in str(getattr(sample, "device", "cpu")).lower():
        precisions.add("tensorfloat32")
    return precisions


def _output(subject: Subject, ids, training, vocab_size):
    """Calls the model, finds its logits, and explains a failure."""
    names = ("source_ids", "target_ids")[-len(ids) :]
    shapes = " and ".join(str(array.shape) for array in ids)
    try:
        output = subject.call(*ids, training=training)
    # Whatever a model of the user's may raise.
    except Exception as error:
        reason = error_summary(error).rstrip(".")
        raise ValueError(
            f"Expected a model called on ({', '.join(names)}). Received "
            f"{subject.name!r}, which for shapes {shapes} raises {reason}. If it takes "
            "other inputs, give `call`, or audit a function of the ids."
        ) from error
    return logits_in(output, ids[-1].shape, vocab_size)

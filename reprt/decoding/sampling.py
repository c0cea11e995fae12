"""Sentences drawn from a language model."""

from collections.abc import Sequence

import numpy as np
from keras import ops

from reprt.compilation import compiled
from reprt.constants import PAD_ID, START_ID, UNKNOWN_ID
from reprt.data.batching import pad_rows
from reprt.data.tokenizers.tokenizer import Tokenizer
from reprt.models.decoder_only import DecoderOnly


def sample(
    model,
    tokenizer: Tokenizer,
    prompts: Sequence[str] = ("",),
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    max_tokens: int = 64,
) -> list[str]:
    """Completes sentences from their beginnings.

    The next token is drawn from softmax(logits / temperature) without padding, the
    unknown word and the start, among the `top_k` likeliest of the others. Each call
    takes a second or more to begin: give it many prompts.

    Args:
        model: a language model, a `DecoderOnly` trained on one side of a text.
        tokenizer: its vocabulary.
        prompts: the beginnings, one for each sentence that is wanted; `""` for none.
        temperature: below 1 for likelier sentences, above 1 for rarer ones.
        top_k: how many tokens are drawn from; None for all, 1 for the likeliest.
        seed: of the random numbers; the same seed draws the same sentences.
        max_tokens: the most tokens of a sentence, `[START]` and the prompt's included.

    Raises:
        ValueError: for a model with an encoder, a temperature that is not positive, a
            `top_k` or `max_tokens` below 1, another model's vocabulary, or a prompt
            that is longer than the model takes.
        ArithmeticError: if logits are not a number.

    >>> import reprt
    >>> from reprt.data.tokenizers.wordpiece import WordPiece
    >>> reserved = ["[PAD]", "[UNK]", "[START]", "[END]"]
    >>> tokenizer = WordPiece([*reserved, "a", "tall", "fish"])
    >>> model = reprt.models.build("decoder-only-tiny", 7, 7)
    >>> [sentence] = reprt.decoding.sample(model, tokenizer, ["a"], max_tokens=4)
    >>> sentence.split()[0]
    'a'
    """
    if not isinstance(model, DecoderOnly):
        raise ValueError(
            "Expected a decoder-only model, trained as a language model. Received: "
            f"{model.name!r}, a {type(model).__name__}."
        )
    top_k_is_valid = top_k is None or top_k >= 1
    if not temperature > 0 or not top_k_is_valid or max_tokens < 1:
        raise ValueError(
            "Expected `temperature` to be positive, `top_k` and `max_tokens` to be at "
            f"least 1. Received: temperature={temperature}, top_k={top_k}, "
            f"max_tokens={max_tokens}."
        )
    if len(tokenizer) != model.target_vocab_size:
        raise ValueError(
            f"Expected `tokenizer` to have the {model.target_vocab_size} pieces of the "
            f"model. Received: {len(tokenizer)}."
        )
    prompts = [prompts] if isinstance(prompts, str) else list(prompts)
    if not prompts:
        return []
    prompt_ids = [ids[:-1] for ids in tokenizer.encode(prompts)]
    lengths = np.array([len(ids) for ids in prompt_ids])
    longest = lengths.max()
    if longest > model.longest_target:
        raise ValueError(
            f"Expected prompts of at most {model.longest_target} tokens, as the model "
            f"takes. Received one of {longest}."
        )
    random = np.random.default_rng(seed)
    step = compiled(model.step, model)
    capacity = max(min(max_tokens, model.longest_target), longest)
    ids = pad_rows(prompt_ids, capacity)
    forbidden_ids = [PAD_ID, UNKNOWN_ID, START_ID, tokenizer.start_id]
    no_source = np.zeros((len(ids), 0), "int32")
    memory = model.encode(no_source, training=False)
    prefixes = model.start(memory, 1, capacity)
    has_ended = np.zeros(len(ids), bool)
    for position in range(capacity - 1):
        place = ops.convert_to_tensor(position, "int32")
        logits, prefixes = step(ids[:, position], place, prefixes)
        scores = ops.convert_to_numpy(logits).astype("float64") / temperature
        if np.isnan(scores).any():
            raise ArithmeticError(
                "Expected finite logits. Received NaN: are the weights finite?"
            )
        scores[:, forbidden_ids] = -np.inf
        sampled_ids = _draw(scores, top_k, random)
        # A prompt is not drawn.
        is_after_prompt = position + 1 >= lengths
        ids[is_after_prompt, position + 1] = sampled_ids[is_after_prompt]
        has_ended |= is_after_prompt & (sampled_ids == tokenizer.end_id)
        if has_ended.all():
            break
    # A prompt may be longer than `max_tokens`, and other sentences are not.
    ends = np.maximum(lengths, max_tokens)
    sentences = [row[:end] for row, end in zip(ids, ends)]
    return [tokenizer.detokenize(text) for text in tokenizer.decode(sentences)]


def _draw(scores, top_k, random) -> np.ndarray:
    """Draws an id of each row from the softmax of its `top_k` largest scores."""
    if top_k is not None and top_k < scores.shape[1]:
        least = np.partition(scores, -top_k, axis=1)[:, -top_k, None]
        scores = np.where(scores < least, -np.inf, scores)
    # The largest of scores with Gumbel noise is a draw from their softmax.
    noise = random.gumbel(size=scores.shape)
    return np.argmax(scores + noise, axis=1)

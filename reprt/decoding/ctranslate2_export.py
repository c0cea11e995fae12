"""A trained Transformer for CTranslate2, an engine in C++ for CPUs and GPUs."""

import json
from pathlib import Path

import numpy as np
from keras import ops

from reprt.constants import PAD, PAD_ID, UNKNOWN, check_choice
from reprt.decoding.ctranslate2_translator import NOTES, ctranslate2
from reprt.decoding.translator import Translator, check_free
from reprt.files import whole_folder, write_text
from reprt.layers import RelativePositional, RotaryPositional
from reprt.layers.masks import FORBIDDEN
from reprt.layers.positions.relative import FARTHEST
from reprt.models import Transformer

# It knows only these values of the settings.
KNOWN: dict[str, tuple] = {
    "position": ("add", "none", "rotary", "relative"),
    "embedding_norm": ("none",),
    "value": ("states",),
    "query_key_norm": (False,),
    "activation": ("relu", "gelu"),
}
ELSEWHERE = (
    "CTranslate2 cannot run it: `reprt export` without --to writes a SavedModel of any "
    "model."
)


def export_ctranslate2(
    translator: Translator, folder: str | Path, quantization: str = "float32"
) -> Path:
    """Writes a model of CTranslate2 with its vocabularies, a folder `ctranslate2`.

    `CTranslate2Translator.load` reads it. Returns its path.

    Args:
        translator: the model, its vocabularies and its search.
        folder: where it goes; made if it is missing.
        quantization: how its matrices are kept, `"float32"` or `"int8"`.

    Raises:
        ValueError: for a model that CTranslate2 cannot run, naming the settings, for an
            unknown quantization, or if the folder has such a model already.
    """
    check_choice(("float32", "int8"), quantization=quantization)
    place = Path(folder, "ctranslate2")
    check_free(place)
    model = translator.model
    if not isinstance(model, Transformer):
        raise ValueError(
            f"Expected an encoder-decoder Transformer. Received {model.name!r}, a "
            f"{type(model).__name__}. {ELSEWHERE}"
        )
    for name, known in KNOWN.items():
        if (own := getattr(model.config, name)) not in known:
            raise ValueError(
                f"Expected a Transformer with {name!r} one of {known}. Received "
                f"{model.name!r}, which has {own!r}. {ELSEWHERE}"
            )
    source, target = translator.source_tokenizer, translator.target_tokenizer
    never, longest = [PAD_ID, target.start_id], model.config.max_length
    spec = _transformer(model, never, longest)
    spec.register_source_vocabulary(source.vocabulary)
    spec.register_target_vocabulary(target.vocabulary)
    spec.config.layer_norm_epsilon = model.config.layer_norm_epsilon
    spec.config.unk_token = UNKNOWN
    # CTranslate2 leaves out what has nothing between these two, and we do not.
    spec.config.bos_token = PAD
    spec.config.eos_token = target.vocabulary[target.end_id]
    spec.config.decoder_start_token = target.vocabulary[target.start_id]
    spec.validate()
    spec.optimize(quantization)
    with whole_folder(place) as unfinished:
        spec.save(str(unfinished))
        for side, tokenizer in (("source", source), ("target", target)):
            tokenizer.write(unfinished / f"{side}{tokenizer.ending}")
        options = "beam_size", "length_penalty", "max_tokens"
        notes = {
            "max_tokens": translator.max_tokens,
            "longest_target": model.longest_target,
            "search": {name: getattr(translator.search, name) for name in options},
        }
        write_text(unfinished / NOTES, json.dumps(notes, indent=2) + "\n")
    return place


def _transformer(parts: Transformer, never: list[int], longest: int):
    """The `TransformerSpec` of a model that never writes some ids, its weights set."""
    specs, settings = ctranslate2().specs, parts.config
    sides = parts.encoder.num_blocks, settings.num_heads
    options = {
        "activation": getattr(specs.Activation, settings.activation.upper()),
        "head_dim": _head_dim(settings),
    }
    match parts.encoder.position:
        case RotaryPositional():
            options |= {"rotary_dim": settings.key_dim, "rotary_interleave": False}
        case RelativePositional():
            options["relative_attention_bias"] = True
    kinds = specs.TransformerEncoderSpec, specs.TransformerDecoderSpec
    encoder, decoder = (
        kind(*sides, no_final_norm=stack.final_norm is None, **options)
        for kind, stack in zip(kinds, (parts.encoder, parts.decoder))
    )
    _embed(encoder, encoder.embeddings[0], parts.source_embedding, longest)
    _embed(decoder, decoder.embeddings, parts.target_embedding, longest)
    for spec, block in zip(encoder.layer, parts.encoder.blocks, strict=True):
        _attention(spec.self_attention, block.self_attention, block.attention_norm)
        _feed_forward(spec.ffn, block)
    for spec, block in zip(decoder.layer, parts.decoder.blocks, strict=True):
        _attention(spec.self_attention, block.self_attention, block.self_norm)
        _attention(spec.attention, block.cross_attention, block.cross_norm)
        _feed_forward(spec.ffn, block)
    for spec, stack in ((encoder, parts.encoder), (decoder, parts.decoder)):
        # Only now: a spec made without `pre_norm` has no place for a last norm.
        spec.pre_norm = settings.norm_place == "before"
        if stack.final_norm is not None:
            _norm(spec.layer_norm, stack.final_norm)
    _output(decoder.projection, parts, decoder.embeddings.weight, never)
    return specs.TransformerSpec(encoder, decoder)


def _embed(spec, table, embedding, longest):
    table.weight = _array(embedding.embedding.embeddings)
    spec.scale_embeddings = embedding.factor
    if hasattr(spec, "position_encodings"):
        # Where positions act within attention, nothing is added.
        nothing = np.zeros((longest, table.weight.shape[1]))
        encoding = getattr(embedding.positional, "encoding", nothing)
        spec.position_encodings.encodings = _array(encoding)


def _attention(spec, layer, norm):
    # Where heads have two widths the narrower is filled up with zeros, which change
    # neither scores nor results.
    width = _head_dim(layer)
    denses = layer.query_dense, layer.key_dense, layer.value_dense
    projections = [_of_heads(dense, width) for dense in denses]
    output = _widened(_array(layer.output_dense.kernel), 1, width)
    *first, last = spec.linear
    # Self-attention projects all three at once, cross attention queries apart.
    groups = [projections] if len(first) == 1 else [projections[:1], projections[1:]]
    for linear, group in zip(first, groups, strict=True):
        weights, biases = zip(*group)
        joined = None if biases[0] is None else np.concatenate(biases)
        _linear(linear, np.concatenate(weights), joined)
    _linear(last, output.reshape(-1, output.shape[-1]).T, _bias(layer.output_dense))
    spec.queries_scale = layer.key_dim**-0.5
    if isinstance(layer.position, RelativePositional):
        spec.relative_attention_bias = _array(layer.position.table)
        spec.relative_attention_max_distance = np.dtype("int32").type(FARTHEST)
    _norm(spec.layer_norm, norm)


def _of_heads(dense, width):
    """A projection to heads `(heads · width, inputs)`, and its bias or None."""
    kernel, bias = _array(dense.kernel), _bias(dense)
    weight = _widened(kernel, 2, width).reshape(len(kernel), -1).T
    return weight, None if bias is None else _widened(bias, 1, width).reshape(-1)


def _feed_forward(spec, block):
    hidden, output = block.feed_forward.hidden, block.feed_forward.output_dense
    _linear(spec.linear_0, _array(hidden.kernel).T, _bias(hidden))
    _linear(spec.linear_1, _array(output.kernel).T, _bias(output))
    _norm(spec.layer_norm, block.feed_forward_norm)


def _output(spec, parts, table, never):
    bias = np.zeros(len(table), "float32")
    if parts.output_dense is not None:
        table, bias = _array(parts.output_dense.kernel).T, _bias(parts.output_dense)
    if parts.output_projection is not None:
        table = table @ _array(parts.output_projection.kernel).T
    bias[never] = FORBIDDEN
    _linear(spec, table, bias)


def _linear(spec, weight, bias):
    spec.weight = np.ascontiguousarray(weight)
    if bias is not None:
        spec.bias = bias


def _norm(spec, norm):
    spec.gamma, spec.beta = _array(norm.gamma), _array(norm.beta)


def _head_dim(layer) -> int:
    """The width of the widest heads of an attention, or of blocks."""
    return max(layer.key_dim, layer.value_dim or 0)


def _widened(x, axis, width):
    room = [(0, 0)] * x.ndim
    room[axis] = 0, width - x.shape[axis]
    return np.pad(x, room)


def _bias(dense):
    return None if dense.bias is None else _array(dense.bias)


def _array(weight) -> np.ndarray:
    return np.array(ops.convert_to_numpy(weight), "float32")

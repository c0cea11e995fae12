"""From a model of any framework to a function from ids to logits.

A framework whose model is given has been imported, so that `sys.modules` has it.
"""

import contextlib
import dataclasses
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np


def no_mode(training: bool):
    """The mode of a model without state: there is nothing to put back."""
    return contextlib.nullcontext(lambda seed: None)


@dataclasses.dataclass(frozen=True)
class Subject:
    """What an audit needs to know of a model.

    Attributes:
        name: for the report.
        call: called with the ids, `(target)` or `(source, target)`, as NumPy arrays,
            and `training`. It returns logits, or what has them.
        pair: whether it takes a source; None if its signature does not say so.
        mode: given `training`, a context in which the model is in that mode, without
            dropout. It yields a function of a seed that puts the state back and is
            called before each call. At the end all is as before.
        source_vocab_size: number of source ids, or None.
        target_vocab_size: the same for the target.
        lengths: the numbers of source and target tokens that it is built for, or None.
        longest: the largest numbers of them.
        precisions: the names of the types that it computes in.
        inputs: the names of two inputs whose order alone says which is the source.
    """

    name: str
    call: Callable[..., Any]
    pair: bool | None
    mode: Callable = no_mode
    source_vocab_size: int | None = None
    target_vocab_size: int | None = None
    lengths: tuple[int | None, int | None] = (None, None)
    longest: tuple[float, float] = (math.inf, math.inf)
    precisions: frozenset[str] = frozenset()
    inputs: tuple[str, ...] = ()


def adapt(model, call: Callable | None) -> Subject:
    """Returns what to ask of a model; `call` is the user's way to call it."""
    keras, torch = map(sys.modules.get, ("keras", "torch"))
    if keras is not None and isinstance(model, keras.Layer):
        return _keras(keras, model, call)
    if torch is not None and isinstance(model, torch.nn.Module):
        return _torch(torch, model, call)
    if call is not None or callable(model):
        return _callable(model, call)
    raise ValueError(
        "Expected a Keras model, a PyTorch module or a function from ids to logits. "
        f"Received: {model!r}, of type {type(model).__name__}."
    )


def _parameters(function) -> Mapping[str, inspect.Parameter]:
    """Returns a function's parameters; none where it hides them."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _takes_pair(function, leading=0) -> bool:
    """Whether a function needs two arguments by position after the leading ones."""
    required = 0
    for parameter in _parameters(function).values():
        by_position = parameter.kind in (
            parameter.POSITIONAL_ONLY,
            parameter.POSITIONAL_OR_KEYWORD,
        )
        has_default = parameter.default is not parameter.empty
        if by_position and not has_default and parameter.name != "training":
            required += 1
    return required > leading + 1


def _with_training_argument(function, needed=True) -> Callable:
    """Returns a function that takes `training` and passes it on where it can.

    With `needed`, a call in training is a `TypeError` if the function has no such
    argument.
    """
    has_training = "training" in _parameters(function)

    def run(*arguments, training):
        if has_training:
            return function(*arguments, training=training)
        if training and needed:
            raise TypeError(
                "it has no argument `training`, which an audit sets"
            )
        return function(*arguments)

    return run


@contextlib.contextmanager
def _without_dropout(parts) -> Iterator[None]:
    """Sets the rates of dropout to zero, and puts them back."""
    rates = []
    for part in parts:
        dropout = "Dropout" in type(part).__name__
        for name, value in vars(part).items():
            rate = "drop" in name or (dropout and name in ("rate", "p"))
            if rate and isinstance(value, float):
                rates.append((part, name, value))
    for part, name, _ in rates:
        setattr(part, name, 0.0)
    try:
        yield
    finally:
        for part, name, value in rates:
            setattr(part, name, value)


# Keras


def _keras(keras, model, call) -> Subject:
    inputs = getattr(model, "inputs", None) or []
    structure = model.input if inputs else None
    layers = _with_sublayers(keras, model)
    user_call = call and _with_training_argument(call)

    def run(*ids, training):
        tensors = list(map(keras.ops.convert_to_tensor, ids))
        if user_call:
            return user_call(model, *tensors, training=training)
        arguments = tensors[0] if len(tensors) == 1 else tuple(tensors)
        if isinstance(structure, Mapping):
            arguments = {}
            for name in structure:
                arguments[name] = _hub_input(keras, name, tensors)
        with warnings.catch_warnings():
            # Keras warns of attention over one token, the shortest truncation.
            warnings.filterwarnings(
                "ignore", "(?s).*You are using a softmax over axis"
            )
            return model(arguments, training=training)

    @contextlib.contextmanager
    def mode(training):
        # Moving averages, and the states of random numbers' generators.
        values = []
        for variable in model.variables:
            values.append((variable, keras.ops.copy(variable.value)))

        def rewind(seed):
            for variable, value in values:
                if variable.name == "seed_generator_state":
                    value = value + keras.ops.cast(seed, variable.dtype)
                variable.assign(value)

        with _without_dropout(layers if training else []):
            try:
                yield rewind
            finally:
                rewind(0)

    ids = list(inputs)
    pair = len(ids) > 1 if ids else None
    if isinstance(structure, Mapping):
        ids = [structure[name] for name in structure if "token_ids" in name]
        pair = len(ids) != 1
    names: tuple[str, ...] = ()
    if call is not None:
        pair = _takes_pair(call, 1)
    elif len(ids) == 2 and not isinstance(structure, Mapping):
        names = tuple(tensor.name for tensor in ids)
    return Subject(
        name=model.name,
        call=run,
        pair=pair,
        mode=mode,
        source_vocab_size=getattr(model, "source_vocab_size", None),
        target_vocab_size=getattr(model, "target_vocab_size", None),
        lengths=_lengths(ids),
        longest=(
            getattr(model, "longest_source", math.inf),
            getattr(model, "longest_target", math.inf),
        ),
        precisions=_keras_precisions(keras, layers),
        inputs=names,
    )


def _lengths(ids):
    """For how many sources and targets inputs are made; None where any number fits."""
    match ids:
        case [target]:
            return None, target.shape[1]
        case [source, target]:
            return source.shape[1], target.shape[1]
        case _:
            return None, None


def _keras_precisions(keras, layers) -> frozenset[str]:
    """The types that layers compute in, and what a GPU makes of float32."""
    precisions = {layer.compute_dtype for layer in layers}
    # PyTorch does not name its devices.
    has_names = keras.backend.backend() in ("tensorflow", "jax")
    devices = keras.distribution.list_devices() if has_names else ["unknown"]
    if not all(device.startswith("cpu") for device in devices):
        # Of a GPU's products of float32, by default.
        precisions.add("tensorfloat32")
    return frozenset(precisions)


def _with_sublayers(keras, model) -> list:
    """Returns a model and the layers that it and they hold, also in collections."""
    layers = {}
    pending = [model]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            pending += part.values()
        elif isinstance(part, list | tuple | set):
            pending += part
        elif isinstance(part, keras.Layer) and id(part) not in layers:
            layers[id(part)] = part
            pending += vars(part).values()
    return list(layers.values())


def _hub_input(keras, name, tensors):
    """The input that keras-hub gives this name."""
    ids = tensors[0] if "encoder" in name else tensors[-1]
    if name.endswith("token_ids"):
        return ids
    if name.endswith("padding_mask"):
        return keras.ops.ones_like(ids)
    raise ValueError(f"the input {name!r} needs `call`")


# PyTorch


def _torch(torch, model, call) -> Subject:
    weight = next(model.parameters(), torch.zeros(()))
    parameters = inspect.signature(model.forward).parameters
    config: Any = getattr(model, "config", None)
    if hasattr(config, "get_text_config"):
        config = config.get_text_config()
    # The module itself knows its mode.
    user_call = call and _with_training_argument(call, needed=False)
    if call is not None:
        pair = _takes_pair(call, 1)
    elif "input_ids" in parameters:
        pair = "decoder_input_ids" in parameters
    else:
        pair = _takes_pair(model.forward)

    def run(*ids, training):
        tensors = []
        for array in ids:
            tensor = torch.as_tensor(array, dtype=torch.long)
            tensors.append(tensor.to(weight.device))
        with torch.no_grad():
            if user_call:
                return user_call(model, *tensors, training=training)
            if "input_ids" in parameters:
                return model(**_hugging_face(torch, parameters, tensors))
            return model(*tensors)

    @contextlib.contextmanager
    def mode(training):
        modes = [(part, part.training) for part in model.modules()]
        buffers = []
        for part in model.modules():
            for name, buffer in part.named_buffers(recurse=False):
                buffers.append((part, name, buffer, buffer.clone()))

        def rewind(seed):
            torch.manual_seed(seed)
            for part, name, buffer, value in buffers:
                # In place, as parts may share it.
                setattr(part, name, buffer.copy_(value))

        parts = model.modules() if training else []
        use_cache = getattr(config, "use_cache", None)
        if use_cache:
            config.use_cache = False
        with torch.random.fork_rng(), _without_dropout(parts):
            model.train(training)
            try:
                yield rewind
            finally:
                rewind(0)
                for part, was_training in modes:
                    part.training = was_training
                if use_cache:
                    config.use_cache = use_cache

    vocab_size = getattr(config, "vocab_size", None)
    precisions = set()
    for parameter in model.parameters():
        precisions.add(str(parameter.dtype).removeprefix("torch."))
    if weight.device.type != "cpu":
        precisions.add("tensorfloat32")
    return Subject(
        type(model).__name__,
        run,
        pair,
        mode,
        vocab_size,
        vocab_size,
        precisions=frozenset(precisions),
    )


def _hugging_face(torch, parameters, tensors):
    """The arguments of a model of Hugging Face: no padding, and no cache."""
    inputs = {"input_ids": tensors[0]}
    if len(tensors) > 1:
        inputs["decoder_input_ids"] = tensors[1]
    if "attention_mask" in parameters:
        inputs["attention_mask"] = torch.ones_like(tensors[0])
    if "use_cache" in parameters:
        inputs["use_cache"] = False
    return inputs


# Functions

CONVERSIONS = {
    "numpy": lambda numpy, ids: ids,
    "torch": lambda torch, ids: torch.as_tensor(ids, dtype=torch.long),
    "jax": lambda jax, ids: jax.numpy.asarray(ids),
    "tensorflow": lambda tensorflow, ids: tensorflow.convert_to_tensor(ids),
}


def _callable(model, call) -> Subject:
    function = model if call is None else call
    leading = () if call is None else (model,)
    in_mode = _with_training_argument(function)
    framework_names: list[str] = []

    def run(*ids, training):
        """Gives ids as arrays, or else as tensors of a framework that is loaded."""
        loaded = [name for name in CONVERSIONS if name in sys.modules]
        names = framework_names or loaded
        for name in names:
            convert = CONVERSIONS[name]
            tensors = [convert(sys.modules[name], array) for array in ids]
            try:
                output = in_mode(*leading, *tensors, training=training)
            except Exception:
                # The last error is the user's; those before are of wrong types.
                if name == names[-1]:
                    raise
                continue
            framework_names[:] = [name]
            return output

    name = getattr(function, "__name__", type(model).__name__)
    name = "the function" if name == "<lambda>" else name
    return Subject(name, run, _takes_pair(function, len(leading)))


# Logits


def to_array(logits) -> np.ndarray:
    """Logits of any framework, as an array of float32."""
    if hasattr(logits, "detach"):
        # NumPy has no bfloat16 of PyTorch's.
        logits = logits.detach().cpu().float()
    if hasattr(logits, "numpy"):
        logits = logits.numpy()
    return np.asarray(logits).astype("float32")


def logits_in(output, shape: tuple[int, int], vocab_size: int | None):
    """Finds logits `(batch, length, vocabulary)` in what a model has returned.

    Of several tensors with three axes, those of the vocabulary's size are the logits.
    """
    if getattr(output, "logits", None) is not None:
        output = output.logits
    if isinstance(output, Mapping):
        parts = [output["logits"]] if "logits" in output else [*output.values()]
    elif isinstance(output, (tuple, list)):
        parts = [*output]
    else:
        parts = [output]
    shapes, candidates = [], []
    for part in parts:
        dimensions = tuple(getattr(part, "shape", ()))
        if len(dimensions) == 3 and dimensions[:2] == shape:
            candidates.append(part)
        if dimensions:
            shapes.append(f"shape={dimensions}")
    if len(candidates) > 1:
        candidates = [
            part for part in candidates if part.shape[2] == vocab_size
        ]
    if len(candidates) == 1:
        return candidates[0]
    received = ", ".join(shapes) or type(output).__name__
    batch, length = shape
    raise ValueError(
        f"Expected one output of the shape ({batch}, {length}, "
        f"{vocab_size or 'vocabulary'}), the logits of targets ({batch}, {length}). "
        f"Received: {received}. Choose it by `call`."
    )

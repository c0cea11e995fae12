"""What a family of models offers to the rest of the package."""

import abc

import keras
from keras import ops

from reprt.constants import PAD_ID
from reprt.layers.layout import Sides
from reprt.layers.masks import as_ids, check_vocabulary, ragged_ids
from reprt.losses import MaskedCrossentropy
from reprt.optimizers import update
from reprt.settings import Settings


class TranslationModel(keras.Model, abc.ABC):
    """A model that reads a source and writes a target, one token after the other.

    Training, evaluation, search, translation, export, audit and attention maps ask a
    model only for what stands here. A family is one class of settings, one subclass of
    this one, and its entry in `reprt.models.registry`.

    | who | asks for |
    |---|---|
    | training | `states`, `projection`, `packed_layout`, the lengths |
    | validation | `states`, `logits` |
    | search, prefix loss | `encode`, `start`, `step`, `extend`, `padding_matters` |
    | audit | the call, `source_vocab_size`, `target_vocab_size` |
    | `"translation_and_source"` | `both_states`, `source_labels` of `DecoderOnly` |
    | attention maps | `attention_weights` |
    | cost | `multiply_adds` |
    | run folders | `config`, `count_params()`, `looks_ahead` |
    | making, `fit`, export | `build()` without a shape, which makes all weights |

    A subclass names the settings' class in `config_class` and registers itself with
    Keras, package `"reprt"`. A subclass of a family that overrides `states` also
    overrides `step`, by which search computes the same.

    Masking: ids 0 are padding, wherever they stand. A model makes its masks from the
    ids itself; logits on real tokens do not depend on padding.

    Packing: with what `reprt.data.pack` adds to the inputs, work on single tokens skips
    padding. The logits are then packed, as the labels that it returns.

    Args:
        source_vocab_size: number of source ids, padding (0) included.
        target_vocab_size: number of target ids, padding (0) included.
        config: the settings, an instance of the family's class or its fields.
        **kwargs: passed to `keras.Model`.

    Call arguments:
        inputs: the pair `(source_ids, target_ids)`, integer tensors `(batch, sources)`
            and `(batch, targets)`; if the model has a `packed_layout`, also the four
            that `reprt.data.pack` makes of it.
        training: whether dropout is active.

    Returns:
        Logits `(batch, targets, target_vocab_size)`, or `(1, packed,
        target_vocab_size)`.

    Raises:
        ValueError: for inputs that are neither; ids that are not integers of rank 2; a
            shared embedding of vocabularies of different sizes.

    >>> import reprt
    >>> model = reprt.models.build("baseline", 9, 9)
    >>> isinstance(model, reprt.models.TranslationModel)
    True
    >>> model.looks_ahead, model.packed_layout, model.longest_target
    (False, 'sides', 2048)
    """

    config_class: type[Settings]
    packed_layout: str | None = None
    """The `layout` of `reprt.data.pack` that `states` takes, or None."""
    looks_ahead: bool = False
    """Whether an output depends on later target tokens, unseen in search."""
    padding_matters: bool = False
    """Whether results depend on padding: if so, equal lengths go together."""
    # Whether `compile` left XLA to the backend.
    _jit_is_automatic: bool = False

    def __init__(self, source_vocab_size, target_vocab_size, config, **kwargs):
        if not isinstance(config, self.config_class):
            config = self.config_class.read(config, "the model's config")
        shared = getattr(config, "shared_embedding", False)
        if shared and source_vocab_size != target_vocab_size:
            raise ValueError(
                "Expected one vocabulary for both sides, which one table embeds. "
                f"Received vocabularies of {source_vocab_size} and {target_vocab_size}."
            )
        super().__init__(**kwargs)
        # Keras would cast ids that a graph has as floats, of which half precision lacks
        # many.
        self.autocast = False
        self.source_vocab_size = source_vocab_size
        self.target_vocab_size = target_vocab_size
        self.config = config
        # The most tokens of either side; a subclass sets its own afterwards.
        self.longest_source = self.longest_target = config.max_length

    def __call__(self, inputs, *args, **kwargs):
        # Keras would take the numbers of a nested list for arguments.
        if self._takes_ids:
            inputs = _without_lists(inputs)
        return super().__call__(inputs, *args, **kwargs)

    @property
    def _takes_ids(self):
        """Whether the call is this class' own; another may take other inputs."""
        return type(self).call is TranslationModel.call

    def fit(self, x=None, y=None, *args, **kwargs):
        """As `keras.Model.fit`; arrays' ids are checked before.

        The keyword `class_weight` is a `ValueError`, because Keras would take the
        weights of the wrong tokens. Give weights of sentences or tokens instead, as
        `sample_weight`.
        """
        if kwargs.get("class_weight") is not None:
            raise ValueError(
                "Expected `class_weight` to be None: Keras does not know classes of "
                "tokens. Give `sample_weight`, a weight of each sentence or token."
            )
        x, y = self._checked_arrays(x, y)
        validation = kwargs.get("validation_data")
        if isinstance(validation, list | tuple) and len(validation) > 1:
            arrays = self._checked_arrays(*validation[:2])
            kwargs["validation_data"] = (*arrays, *validation[2:])
        return super().fit(x, y, *args, **kwargs)

    def evaluate(self, x=None, y=None, *args, **kwargs):
        """As `keras.Model.evaluate`; arrays' ids are checked before."""
        x, y = self._checked_arrays(x, y)
        return super().evaluate(x, y, *args, **kwargs)

    def predict(self, x, *args, **kwargs):
        """As `keras.Model.predict`; arrays' ids are checked before."""
        x, _ = self._checked_arrays(x)
        return super().predict(x, *args, **kwargs)

    def _checked_arrays(self, x, y=None):
        """Returns inputs and labels; ids that no embedding has are a `ValueError`.

        No graph checks ids.
        """
        is_pair = isinstance(x, list | tuple) and len(x) == 2
        if not self._takes_ids or not is_pair:
            return x, y
        x = _without_lists(x)
        y = as_ids(y) if isinstance(y, list) else y
        sizes = self.source_vocab_size, self.target_vocab_size
        for name, ids, size in zip(("source_ids", "target_ids"), x, sizes):
            if hasattr(ids, "row_lengths"):
                raise ragged_ids()
            check_vocabulary(name, ids, size)
        if hasattr(y, "shape"):
            # A label below 0 is padding, too.
            labels = ops.maximum(y, PAD_ID)
            check_vocabulary("labels", labels, self.target_vocab_size)
        return x, y

    def quantize(self, mode=None, config=None, **kwargs):
        """Refuses: logits and packed attention take the weights themselves."""
        raise self._no_quantization(mode)

    def _no_quantization(self, mode):
        return ValueError(
            f"Expected {self.name!r} to keep its weights as floating-point numbers. "
            f"Received: quantize({mode!r})."
        )

    def export(self, filepath, *args, input_signature=None, **kwargs):
        """Writes the call for programs without this package, as Keras does.

        Arguments are those of `keras.Model.export`. Without an `input_signature` it
        takes the pair of `source_ids` and `target_ids`, int32 of any batch and lengths.
        """
        if not self.built:
            self.build()
        if input_signature is None:
            ids = "int32", (None, None)
            source = keras.InputSpec(*ids, name="source_ids")
            target = keras.InputSpec(*ids, name="target_ids")
            input_signature = [(source, target)]
        super().export(
            filepath, *args, input_signature=input_signature, **kwargs
        )

    @abc.abstractmethod
    def states(self, inputs, training=None):
        """Returns what the logits are made of, given the right target.

        Args:
            inputs, training: as in the call.

        Returns:
            Tensor `(batch, targets, width)`; packed, `(1, packed, width)`.
        """

    def projection(self):
        """Returns what makes logits of states: `logits = states @ kernel + bias`.

        Here it is the layer `output_dense` or, where that is None, the table of
        `target_embedding`.

        Returns:
            The pair of `(width, target_vocab_size)` and `(target_vocab_size,)`, in the
            dtype that the model computes in; None for a bias that it does not have.
        """
        dtype, output = self.compute_dtype, self.output_dense
        layer = self.target_embedding.embedding if output is None else output
        # A model around this one may have quantised the layer.
        if layer.quantization_mode is not None:
            raise self._no_quantization(layer.quantization_mode)
        if output is None:
            return ops.cast(ops.transpose(layer.embeddings), dtype), None
        return ops.cast(output.kernel, dtype), ops.cast(output.bias, dtype)

    def logits(self, states):
        """Returns the scores of the next token, `(..., target_vocab_size)`."""
        kernel, bias = self.projection()
        scores = ops.matmul(states, kernel)
        return scores if bias is None else scores + bias

    def call(self, inputs, training=None):
        return self.logits(self.states(inputs, training=training))

    def compile(self, *arguments, jit_compile="auto", **keywords):
        """As `keras.Model.compile`; TensorFlow uses XLA only if that is asked for.

        XLA would compile anew for each batch's shape.
        """
        self._jit_is_automatic = jit_compile == "auto"
        if self._jit_is_automatic and keras.backend.backend() == "tensorflow":
            jit_compile = False
        super().compile(*arguments, jit_compile=jit_compile, **keywords)

    def get_compile_config(self):
        config = super().get_compile_config()
        # Another backend decides for itself.
        if config is not None and self._jit_is_automatic:
            config["jit_compile"] = "auto"
        return config

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

    def make_train_function(self, force=False):
        """Makes all variables, so that TensorFlow traces a step of `fit` only once."""
        if not self.built:
            self.build()
        # A layer of one's own may have its variables only after a call.
        ready = all(layer.built for layer in self.layers)
        if ready and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def train_step(self, *arguments):
        """As `keras.Model.train_step`; an id's gradients are added up before a step."""
        if keras.backend.backend() != "tensorflow":
            return super().train_step(*arguments)
        import tensorflow as tf

        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(*arguments)
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = self.compute_loss(x, y, logits, sample_weight, training=True)
            scaled = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        update(self.optimizer, tape.gradient(scaled, weights), weights)
        # Keras' loss is a replica's share of the mean.
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        sentences = tf.shape(keras.tree.flatten(x)[0])[0]
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss * replicas, sample_weight=sentences)
        return self.compute_metrics(x, y, logits, sample_weight)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Builds loss and metrics on two ids.

        Under a strategy Keras would build them on the mean of the replicas' batches,
        whose shapes may differ.
        """
        if self._takes_ids and type(self.loss) is MaskedCrossentropy:
            ids = ops.ones((1, 2), "int32")
            iterator, data_batch = None, ((ids, ids), ids)
        super()._maybe_symbolic_build(iterator, data_batch)

    @abc.abstractmethod
    def encode(self, source_ids, *, training=None):
        """Returns what `start` takes of a source, read once for all steps of a search.

        Args:
            source_ids: integer tensor `(sentences, sources)`, 0 for padding.
            training: whether dropout is active.
        """

    @abc.abstractmethod
    def start(self, memory, beams: int, capacity: int):
        """Begins the translation of an encoded source, token by token.

        Args:
            memory: what `encode` returned.
            beams: hypotheses of each sentence; they follow one another.
            capacity: how many tokens there is room for.

        Returns:
            What `step` takes and returns, the `reprt.models.prefixes.Prefixes`.
        """

    def extend(self, prefixes, tokens: int):
        """Returns prefixes with room for more tokens, once there is none."""
        return prefixes

    @abc.abstractmethod
    def step(self, ids, position, prefixes):
        """Scores the token after one further token of each hypothesis.

        Args:
            ids: integer tensor `(hypotheses,)`, the tokens at `position`.
            position: scalar, counted from 0.
            prefixes: what `start` or the step before returned.

        Returns:
            The pair of the logits `(hypotheses, target_vocab_size)` and the prefixes
            with these tokens. No logit depends on a token after `position`.
        """

    @abc.abstractmethod
    def multiply_adds(self, sources, targets):
        """Returns the multiply-adds of the products in a forward pass over pairs.

        A product of `(a, b)` and `(b, c)` counts a·b·c. Attention counts every query
        times every key, even where a mask hides the key. The output layer counts for
        target tokens only. Biases, norms, activations, look-ups and what untied
        positions project do not count.

        Args:
            sources, targets: how many tokens each side of a pair has without padding,
                numbers or arrays `(pairs,)` of numbers. Integers take 64 bits.
        """

    def attention_weights(self, source_ids, target_ids):
        """Returns what every head attends to, without dropout.

        Returns:
            A dictionary of some of the kinds `"encoder"` and `"decoder"`
            (self-attention), `"cross"` and `"sequence"` (attention within source and
            target as one sequence): tensors `(blocks, batch, heads, queries, keys)`,
            whose rows sum to 1.
        """
        raise ValueError(
            f"Expected a model whose attention can be shown. {self.name!r}, a "
            f"{type(self).__name__}, has no weights to show."
        )

    def get_config(self):
        return {
            **super().get_config(),
            "source_vocab_size": self.source_vocab_size,
            "target_vocab_size": self.target_vocab_size,
            "config": self.config.as_table(),
        }

    def _dense(self, width, name, use_bias=False):
        return keras.layers.Dense(
            width,
            use_bias=use_bias,
            dtype=self.dtype_policy,
            name=name,
        )

    def _unpack(self, inputs):
        """The inputs, checked: ids of both sides, and what packing has added."""
        count = len(inputs) if isinstance(inputs, list | tuple) else None
        if count == 4 and self.packed_layout is not None:
            self._check_layout(inputs[3])
        elif count != 2:
            raise self._wrong_inputs(inputs)
        return inputs

    def _check_layout(self, target_packing):
        """Raises a `ValueError` for inputs that were packed by the other layout."""
        one_sequence = isinstance(target_packing, Sides)
        if one_sequence != (self.packed_layout == "sequence"):
            raise ValueError(
                f"{self.name!r} expects `reprt.data.pack` to have packed its inputs by "
                f"layout={self.packed_layout!r}. Received: the other layout."
            )

    def _wrong_inputs(self, inputs):
        """Returns the error for inputs that are neither a pair nor packed."""
        packed = ""
        if self.packed_layout is not None:
            packed = ", or the four that reprt.data.pack makes of it"
        received = type(inputs).__name__
        if isinstance(inputs, list | tuple):
            received = f"{len(inputs)} inputs"
        return ValueError(
            "Expected the inputs to be the pair (source_ids, target_ids)"
            f"{packed}; `fit` takes them with labels, ((source_ids, target_ids), "
            f"labels). Received: {received}."
        )


def check_model(model):
    """Raises a `ValueError` unless it is a `TranslationModel`."""
    if not isinstance(model, TranslationModel):
        raise ValueError(
            "Expected a reprt.models.TranslationModel, such as reprt.models.build "
            f"returns. Received: {type(model).__name__}."
        )


def _without_lists(inputs):
    """Inputs with arrays for lists, whose numbers Keras would take for arguments."""
    if not isinstance(inputs, list | tuple):
        return inputs
    if not any(isinstance(ids, list) for ids in inputs):
        return inputs
    return tuple(
        as_ids(ids) if isinstance(ids, list) else ids for ids in inputs
    )

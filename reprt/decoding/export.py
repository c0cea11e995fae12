"""A trained model for use without this package: strings in, strings out."""

from pathlib import Path

import keras
import tensorflow as tf

from reprt.constants import PAD_ID
from reprt.data.corpora.corpus import word_pattern
from reprt.decoding.translator import Translator
from reprt.files import whole_file, whole_folder


class ExportedTranslator(tf.Module):
    """A `Translator` as one graph, for a SavedModel: from strings to strings."""

    def __init__(self, translator: Translator):
        super().__init__()
        self._model = translator.model
        self._search = translator.search
        self._max_tokens = translator.max_tokens
        self._source = translator.source_tokenizer
        self._target = translator.target_tokenizer
        # A SavedModel has the tables and models of what the module holds.
        self._graphs = [self._source.graph, self._target.graph]

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, "sentences")],
        autograph=False,
    )
    def __call__(self, sentences):
        """Returns the best translation of each sentence, `(sentences,)` strings."""
        # Bytes that are not UTF-8 become a character that no vocabulary knows.
        sentences = tf.strings.unicode_transcode(sentences, "UTF-8", "UTF-8")
        has_words = tf.strings.regex_full_match(sentences, word_pattern())
        with_words = tf.boolean_mask(sentences, has_words)
        if self._model.padding_matters:
            # One by one, so that no padding counts.
            translations = tf.map_fn(
                lambda sentence: self._translate(sentence[None])[0], with_words
            )
        else:
            translations = self._translate(with_words)
        empty = tf.fill(tf.shape(sentences), "")
        return tf.tensor_scatter_nd_update(
            empty, tf.where(has_words), translations
        )

    def _translate(self, sentences):
        ids = self._source.graph_encode(sentences)[:, : self._max_tokens]
        ids = tf.cast(ids.to_tensor(), tf.int32)
        # Recurrent layers need a token, also where there is no sentence.
        missing = tf.cast(tf.equal(tf.shape(ids)[1], 0), tf.int32)
        ids = tf.pad(ids, [[0, 0], [0, missing]])
        search = self._search
        capacity = search.most_tokens(tf.shape(ids)[1])
        beams, prefixes = search.begin(ids, capacity)
        beams, *_ = search.run(beams, prefixes, tf.constant(0), (capacity, 0))
        best = search.best(beams)
        # What follows the end is padding, which has no words.
        is_word = tf.logical_and(best != self._target.end_id, best != PAD_ID)
        return self._target.graph_detokenize(
            tf.ragged.boolean_mask(best, is_word)
        )


def export(translator: Translator, folder: str | Path) -> tuple[Path, Path]:
    """Writes a SavedModel and a `.keras` file to a folder, and returns their paths.

    `saved_model` takes strings and needs nothing but TensorFlow and tensorflow-text;
    `model.keras` takes ids and needs this package. It is a `ValueError` if the folder
    has such files already, or if Keras' backend is not TensorFlow.
    """
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "Expected Keras' TensorFlow backend, of which a SavedModel is a graph. "
            f"Received: KERAS_BACKEND={keras.backend.backend()}."
        )
    saved_model = Path(folder, "saved_model")
    model = Path(folder, "model.keras")
    for path in (saved_model, model):
        if path.exists():
            raise ValueError(
                f"Expected a folder without {path.name}. Received {path.parent}, which "
                "has one. Choose another --out, or remove it."
            )
    try:
        with whole_folder(saved_model) as unfinished, whole_file(model) as file:
            tf.saved_model.save(ExportedTranslator(translator), str(unfinished))
            keras.saving.save_model(translator.model, file.name)
    # TensorFlow and HDF5 have errors of their own for what the system refuses.
    except (OSError, RuntimeError, tf.errors.OpError) as error:
        # The model's file gets its name before the folder does.
        model.unlink(missing_ok=True)
        reason = str(error).splitlines()[0]
        raise OSError(
            f"The export cannot be written to {folder}: {reason}"
        ) from error
    return saved_model, model

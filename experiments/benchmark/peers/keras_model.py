"""What every peer does that has a Keras `model`."""

import keras
import numpy as np


class KerasModel:
    """A Keras `model`, and its weights."""

    packages = ("keras", keras.backend.backend())

    @property
    def parameters(self):
        return self.model.count_params()

    def variables(self):
        """Returns the variables in the order that the peers have agreed on."""
        return self.model.trainable_variables

    def weights(self):
        return [np.asarray(variable) for variable in self.variables()]

    def load(self, weights):
        for variable, array in zip(self.variables(), weights, strict=True):
            variable.assign(array)

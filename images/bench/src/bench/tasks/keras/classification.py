"""Trains and runs classifiers of images or texts in Keras."""

import keras
from keras import ops

from bench.tasks.keras.interface import Part, Tensor, Tensors
from bench.tasks.keras.precision import widen


class Classification:
    """Cross entropy of the model's logits, averaged over the batch. Inputs: samples and integer labels (batch,)."""

    def __init__(self, model: keras.Model) -> None:
        self.networks = {"model": model}
        self.parts: tuple[Part, ...] = (ClassificationPart(model),)

    def infer(self, samples: Tensor, labels: Tensor) -> Tensor:
        """Return the logits (batch, classes)."""
        return self.networks["model"](samples, training=False)


class ClassificationPart:
    """The one part of a classifier's training step."""

    state: tuple[keras.Variable, ...] = ()

    def __init__(self, model: keras.Model) -> None:
        self.networks = (model,)

    def compute_loss(self, *tensors: Tensor) -> tuple[Tensor, Tensors]:
        """Return the mean cross entropy, computed in float32 at least, and no tensors for the next part."""
        samples, labels = tensors
        logits = widen(self.networks[0](samples, training=True))
        return ops.mean(ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)), ()

"""Builds Conv6 in Keras 3, with the layers of bench.models.torch.conv6."""

import keras
from keras import layers

from bench.models.keras.image_layers import make_image_input
from bench.models.keras.initializers import glorot_normal
from bench.schema import Cell

WIDTHS = (64, 128, 256)


def build(cell: Cell) -> keras.Model:
    """Return the Conv-6 of Frankle and Carbin, channels last: 2,262,602 parameters at 32 px and 10 classes.

    The flattened features are ordered height, width, channel, PyTorch's channel, height, width: weights copied across
    must be permuted in the first dense layer.
    """
    inputs = make_image_input(cell.input_size)
    x = inputs
    for width in WIDTHS:
        for _ in range(2):
            # At stride 1 "same" is PyTorch's padding of 1.
            x = layers.Conv2D(width, 3, padding="same", activation="relu", kernel_initializer=glorot_normal())(x)
        x = layers.MaxPooling2D(2)(x)
    x = layers.Flatten()(x)
    for _ in range(2):
        x = layers.Dense(256, activation="relu", kernel_initializer=glorot_normal())(x)
    return keras.Model(inputs, layers.Dense(cell.num_classes, kernel_initializer=glorot_normal())(x))

"""Builds ResNet18 with the CIFAR stem in Keras 3, with the layers of the PyTorch definition."""

import keras
from keras import layers

from bench.models.keras.image_layers import make_image_input
from bench.models.keras.resnet18 import classify, convolve_and_normalize
from bench.schema import Cell


def build(cell: Cell) -> keras.Model:
    """Return ResNet18 with a 3x3 stem of stride 1 and no max-pool: 11,173,962 trainable parameters at 10 classes."""
    inputs = make_image_input(cell.input_size)
    x = layers.ReLU()(convolve_and_normalize(inputs, cell, 64, 3))
    return keras.Model(inputs, classify(x, cell))

"""Builds ResNet50 in Keras 3, with the layers of torchvision's resnet50."""

from typing import Any

import keras
from keras import layers

from bench.models.keras.image_layers import make_image_input
from bench.models.keras.resnet18 import add_head, add_stem, convolve_and_normalize
from bench.schema import Cell

# (channels of the 3x3 convolutions, blocks, stride of the first block) of the four stages.
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
EXPANSION = 4


def build(cell: Cell) -> keras.Model:
    """Return ResNet50, channels last: 25,557,032 trainable parameters at 1000 classes.

    v1.5: the stride is that of the 3x3 convolution, as torchvision has it (models/resnet.py). Padding,
    norms and initial weights as in `bench.models.keras.resnet18`.
    """
    inputs = make_image_input(cell.input_size)
    x = add_stem(inputs, cell)
    for width, num_blocks, stride in STAGES:
        for number in range(num_blocks):
            x = _add_bottleneck(x, cell, width, stride if number == 0 else 1)
    return keras.Model(inputs, add_head(x, cell))


def _add_bottleneck(x: Any, cell: Cell, width: int, stride: int) -> Any:
    shortcut = x
    if stride != 1 or x.shape[-1] != EXPANSION * width:
        shortcut = convolve_and_normalize(x, cell, EXPANSION * width, 1, stride)
    x = layers.ReLU()(convolve_and_normalize(x, cell, width, 1))
    x = layers.ReLU()(convolve_and_normalize(x, cell, width, 3, stride))
    x = convolve_and_normalize(x, cell, EXPANSION * width, 1)
    return layers.ReLU()(layers.Add()([x, shortcut]))

"""Builds VGG16 in Keras 3, with the layers of torchvision's vgg16."""

from typing import Any

import keras
from keras import layers

from bench.models.keras.image_layers import make_image_input
from bench.models.keras.initializers import he_normal_fan_out
from bench.schema import Cell

# (channels, convolutions) of the five stages, each ended by a max-pool: configuration D of arXiv 1409.1556, table 1.
STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
# Side of the feature map that the dense layers take: that of 224 px. torchvision averages others to it.
DENSE_SIDE = 7
DROPOUT_RATE = 0.5


def build(cell: Cell) -> keras.Model:
    """Return VGG16, channels last: 138,357,544 parameters at 1000 classes and any size.

    Weights are drawn as torchvision draws them (torchvision/models/vgg.py): convolutions He-normal over the fan out,
    dense layers N(0, 0.01), zero biases. Weights copied across must be permuted in the first dense layer.
    """
    inputs = make_image_input(cell.input_size)
    x = inputs
    for num_channels, num_convolutions in STAGES:
        for _ in range(num_convolutions):
            # At stride 1 "same" is PyTorch's padding of 1.
            initializer = he_normal_fan_out()
            x = layers.Conv2D(num_channels, 3, padding="same", activation="relu", kernel_initializer=initializer)(x)
        x = layers.MaxPooling2D(2)(x)
    if x.shape[1] != DENSE_SIDE:
        x = layers.AdaptiveAveragePooling2D(DENSE_SIDE)(x)
    x = layers.Flatten()(x)
    for _ in range(2):
        x = layers.Dropout(DROPOUT_RATE)(_connect(x, 4096, activation="relu"))
    return keras.Model(inputs, _connect(x, cell.num_classes))


def _connect(x: Any, num_outputs: int | None, **options: Any) -> Any:
    return layers.Dense(num_outputs, kernel_initializer=keras.initializers.RandomNormal(stddev=0.01), **options)(x)

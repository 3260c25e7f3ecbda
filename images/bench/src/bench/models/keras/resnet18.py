"""Builds ResNet18 in Keras 3, with the layers of torchvision's resnet18."""

from typing import Any

import keras
from keras import layers

from bench.models.keras.image_layers import convolve, make_image_input, normalize_batch
from bench.models.keras.initializers import he_normal_fan_out, torch_uniform
from bench.schema import Cell

# (channels, stride of the first block) of the four stages, two basic blocks each.
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


def build(cell: Cell) -> keras.Model:
    """Return ResNet18 with the ImageNet stem, channels last: 11,689,512 trainable parameters at 1000 classes.

    As in torchvision: zero padding on both sides (Keras's "same" pads one side only at stride 2), batch norm with
    epsilon 1e-5 and momentum 0.9 (PyTorch's 0.1), convolutions without bias, He initialisation over the fan out, the
    dense layer drawn as torch.nn.Linear draws it. One difference remains: the running variance is that of n values in
    Keras, PyTorch's that of n - 1.
    """
    inputs = make_image_input(cell.input_size)
    return keras.Model(inputs, classify(add_stem(inputs, cell), cell))


def add_stem(images: Any, cell: Cell) -> Any:
    """Return the output of the ImageNet stem: a 7x7 convolution to 64 channels and max-pooling, each of stride 2."""
    x = layers.ReLU()(convolve_and_normalize(images, cell, 64, 7, stride=2))
    # Padding with zeros equals PyTorch's padding with minus infinity, since no value after a ReLU is below zero.
    return layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(x))


def classify(x: Any, cell: Cell) -> Any:
    """Return the logits for the stem's output: four stages, then the head."""
    for num_channels, stride in STAGES:
        x = _add_block(x, cell, num_channels, stride)
        x = _add_block(x, cell, num_channels, 1)
    return add_head(x, cell)


def add_head(x: Any, cell: Cell) -> Any:
    """Return the logits for the last stage's output: the mean over the positions, one dense layer."""
    x = layers.GlobalAveragePooling2D()(x)
    weights, bias = (torch_uniform(x.shape[-1]) for _ in range(2))
    return layers.Dense(cell.num_classes, kernel_initializer=weights, bias_initializer=bias)(x)


def convolve_and_normalize(x: Any, cell: Cell, num_channels: int, kernel_size: int, stride: int = 1) -> Any:
    """Return the batch-normalised convolution of x."""
    x = convolve(
        x,
        num_channels,
        kernel_size,
        padding=kernel_size // 2,
        stride=stride,
        use_bias=False,
        kernel_initializer=he_normal_fan_out(),
    )
    return normalize_batch(x, cell)


def _add_block(x: Any, cell: Cell, num_channels: int, stride: int) -> Any:
    shortcut = x
    if stride != 1 or x.shape[-1] != num_channels:
        shortcut = convolve_and_normalize(x, cell, num_channels, 1, stride)
    x = layers.ReLU()(convolve_and_normalize(x, cell, num_channels, 3, stride))
    x = convolve_and_normalize(x, cell, num_channels, 3)
    return layers.ReLU()(layers.Add()([x, shortcut]))

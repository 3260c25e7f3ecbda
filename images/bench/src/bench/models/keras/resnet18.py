"""ResNet18 in Keras 3: a Cell in, a keras.Model out; the mirror of torchvision's resnet18, layer by layer."""

from typing import Any

import keras
from keras import layers

from bench.schema import Cell

# (channels, stride of the first block) of the four stages, two basic blocks each.
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


def build(cell: Cell) -> keras.Model:
    """Return ResNet18 with the ImageNet stem, channels last: 11,689,512 trainable parameters at 1000 classes.

    As in torchvision: zero padding on both sides (Keras's "same" pads one side only at stride 2), batch norm with
    epsilon 1e-5 and momentum 0.9 (PyTorch's 0.1), convolutions without bias, He initialisation over the fan out.
    What is left: the running variance is that of n values in Keras, PyTorch's that of n - 1.
    """
    inputs = keras.Input((cell.input_size, cell.input_size, 3))
    x = _convolve(inputs, 64, kernel_size=7, stride=2)
    x = layers.ReLU()(_normalize(x))
    # Padding with zeros equals PyTorch's padding with minus infinity, since no value after a ReLU is below zero.
    x = layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(x))
    for num_channels, stride in STAGES:
        x = _add_block(x, num_channels, stride)
        x = _add_block(x, num_channels, 1)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(cell.num_classes)(x))


def _add_block(x: Any, num_channels: int, stride: int) -> Any:
    shortcut = x
    if stride != 1 or x.shape[-1] != num_channels:
        shortcut = _normalize(_convolve(x, num_channels, kernel_size=1, stride=stride))
    x = layers.ReLU()(_normalize(_convolve(x, num_channels, kernel_size=3, stride=stride)))
    x = _normalize(_convolve(x, num_channels, kernel_size=3, stride=1))
    return layers.ReLU()(layers.Add()([x, shortcut]))


def _convolve(x: Any, num_channels: int, *, kernel_size: int, stride: int) -> Any:
    padding = kernel_size // 2
    if padding:
        x = layers.ZeroPadding2D(padding)(x)
    initializer = keras.initializers.VarianceScaling(2.0, mode="fan_out", distribution="untruncated_normal")
    convolution = layers.Conv2D(
        num_channels, kernel_size, strides=stride, use_bias=False, kernel_initializer=initializer
    )
    return convolution(x)


def _normalize(x: Any) -> Any:
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

"""Builds the layers that Keras's image models share: input, convolutions with PyTorch's padding, batch norms."""

from typing import Any

import keras
from keras import layers

from bench.schema import Cell


def make_image_input(size: int) -> Any:
    """Return the input for images (batch, size, size, 3), in the dtype that the layers compute in.

    An input of float32 would turn half-precision images into float32, and every layer back.
    """
    return keras.Input((size, size, 3), dtype=keras.config.dtype_policy().compute_dtype)


def convolve(x: Any, num_channels: int, kernel_size: int, *, padding: int, stride: int = 1, **options: Any) -> Any:
    """Return a convolution of x with `padding` zeros on each side, as PyTorch pads. `options` are those of Conv2D.

    Keras's "same" is used where it is that very padding, which spares a copy of x. In general it is not: it pads just
    enough for ceil(side / stride) outputs, the odd zero behind (https://www.tensorflow.org/api_docs/python/tf/nn,
    "Notes on padding").
    """
    side = x.shape[1]
    same_padding = max((-(-side // stride) - 1) * stride + kernel_size - side, 0)
    if padding and same_padding != 2 * padding:
        x = layers.ZeroPadding2D(padding)(x)
    padding_mode = "same" if padding and same_padding == 2 * padding else "valid"
    return layers.Conv2D(num_channels, kernel_size, strides=stride, padding=padding_mode, **options)(x)


def normalize_batch(x: Any, cell: Cell) -> Any:
    """Return the batch norm of x with PyTorch's momentum and epsilon: Keras's own, or TensorFlow's (`fused-norm`)."""
    if cell.mode == "fused-norm":
        from bench.models.keras.fused_norm import FusedBatchNormalization  # only where TensorFlow is Keras's backend

        return FusedBatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

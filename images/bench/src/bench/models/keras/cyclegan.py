"""Builds CycleGAN's generators and discriminators in Keras 3, with the layers of the PyTorch definition."""

from typing import Any

import keras
from keras import layers, ops

from bench.models.keras.image_layers import convolve, make_image_input
from bench.schema import Cell

NUM_BLOCKS = 9
WIDTH = 64
"""Channels of the first layer of every network; the others have multiples of it."""


def build(cell: Cell) -> dict[str, keras.Model]:
    """Return generator_ab, generator_ba (11,378,179 parameters each) and discriminator_a, discriminator_b (2,764,737).

    Generators map images (batch, size, size, 3) to images in [-1, 1], size a multiple of 4. Discriminators map images
    to scores (batch, n, n, 1) of overlapping patches of 70 px; n = 30 at 256 px.
    """
    return {
        "generator_ab": build_generator(cell.input_size),
        "generator_ba": build_generator(cell.input_size),
        "discriminator_a": build_discriminator(cell.input_size),
        "discriminator_b": build_discriminator(cell.input_size),
    }


def build_generator(size: int) -> keras.Model:
    """Return c7s1-64, d128, d256, nine blocks R256, u128, u64, c7s1-3, as the paper's appendix writes it."""
    inputs = make_image_input(size)
    x = _normalize_and_rectify(_convolve(_reflect(inputs, 3), WIDTH, 7))
    for num_channels in (2 * WIDTH, 4 * WIDTH):
        x = _normalize_and_rectify(_convolve(x, num_channels, 3, stride=2, padding=1))
    for _ in range(NUM_BLOCKS):
        x = _add_block(x)
    for num_channels in (2 * WIDTH, WIDTH):
        x = _normalize_and_rectify(_upsample(x, num_channels))
    x = _convolve(_reflect(x, 3), 3, 7)
    return keras.Model(inputs, layers.Activation("tanh")(x))


def build_discriminator(size: int) -> keras.Model:
    """Return C64 (without norm), C128, C256, C512 and a convolution to one score, kernels of 4: PatchGAN of 70 px."""
    inputs = make_image_input(size)
    x = layers.LeakyReLU(negative_slope=0.2)(_convolve(inputs, WIDTH, 4, stride=2, padding=1))
    for num_channels, stride in ((2 * WIDTH, 2), (4 * WIDTH, 2), (8 * WIDTH, 1)):
        x = _normalize(_convolve(x, num_channels, 4, stride=stride, padding=1))
        x = layers.LeakyReLU(negative_slope=0.2)(x)
    return keras.Model(inputs, _convolve(x, 1, 4, padding=1))


def _add_block(x: Any) -> Any:
    branch = _normalize_and_rectify(_convolve(_reflect(x, 1), x.shape[-1], 3))
    branch = _normalize(_convolve(_reflect(branch, 1), x.shape[-1], 3))
    return layers.Add()([x, branch])


def _convolve(x: Any, num_channels: int, kernel_size: int, *, stride: int = 1, padding: int = 0) -> Any:
    initializer = _make_initializer()
    return convolve(x, num_channels, kernel_size, padding=padding, stride=stride, kernel_initializer=initializer)


def _upsample(x: Any, num_channels: int) -> Any:
    """Return PyTorch's ConvTranspose2d(kernel_size=3, stride=2, padding=1, output_padding=1): twice the side.

    Output o takes input i by weight k where o = 2 i + k - 1. Unpadded ("valid"), Keras's takes o = 2 i + k and yields
    one row and column more: the first ones are cut off. Its "same" would cut off the last ones.
    """
    initializer = _make_initializer()
    x = layers.Conv2DTranspose(num_channels, 3, strides=2, padding="valid", kernel_initializer=initializer)(x)
    return layers.Cropping2D(((1, 0), (1, 0)))(x)


def _make_initializer() -> Any:
    return keras.initializers.RandomNormal(stddev=0.02)


def _reflect(x: Any, padding: int) -> Any:
    return ops.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)), mode="reflect")


def _normalize(x: Any) -> Any:
    """Return instance norm: a group per channel, PyTorch's epsilon, no affine parameters."""
    return layers.GroupNormalization(groups=-1, epsilon=1e-5, center=False, scale=False)(x)


def _normalize_and_rectify(x: Any) -> Any:
    return layers.ReLU()(_normalize(x))

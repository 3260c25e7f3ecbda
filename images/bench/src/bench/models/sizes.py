"""How wide and how deep the models are, once for their definitions and for the count of their operations."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.registry import Decoder

# (channels, convolutions) of the stages of 3x3 convolutions, each ended by a max-pool.
CONV6_STAGES = ((64, 2), (128, 2), (256, 2))
# Configuration D of arXiv 1409.1556, table 1.
VGG16_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
# Side of the feature map that VGG16's dense layers take: that of 224 px. torchvision averages others to it.
DENSE_SIDE = 7

ResidualBlock = tuple[tuple[int, int, int], ...]
"""(channels, kernel size, stride) of the convolutions on its way; the shortcut has one of 1x1 where shapes differ."""
RESNET18_BLOCKS: tuple[ResidualBlock, ...] = tuple(
    ((width, 3, 1 if width == 64 or number else 2), (width, 3, 1)) for width in (64, 128, 256, 512) for number in (0, 1)
)
# v1.5: the stride is that of the 3x3 convolution, as torchvision has it (models/resnet.py).
RESNET50_BLOCKS: tuple[ResidualBlock, ...] = tuple(
    ((width, 1, 1), (width, 3, 1 if width == 64 or number else 2), (4 * width, 1, 1))
    for width, num_blocks in ((64, 3), (128, 4), (256, 6), (512, 3))
    for number in range(num_blocks)
)


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """The layers of a Transformer: attention and two dense layers, a norm before each, and a last norm."""

    width: int
    num_layers: int
    num_heads: int
    mlp_width: int


PATCH_SIZE = 16
VIT_ENCODER = Encoder(width=768, num_layers=12, num_heads=12, mlp_width=3072)
TEXT_ENCODER = Encoder(width=256, num_layers=4, num_heads=4, mlp_width=1024)
GENERATOR_BLOCKS = 9
GAN_WIDTH = 64  # of the first layer of each of CycleGAN's networks; the others have multiples of it
ROTARY_BASE = np.float32(500_000)
RMS_EPSILON = 1e-5
LEAST_SCALE = 1e-12
"""Of eight-bit weights: the scale of a row of zeros, which cannot be divided by its largest value."""


def make_rotation(shape: Decoder, length: int) -> NDArray[np.float32]:
    """Return cosines and sines (2, length, head_width / 2) of the rotary positions (arXiv 2104.09864)."""
    frequencies = 1 / ROTARY_BASE ** (np.arange(0, shape.head_width, 2, dtype=np.float32) / shape.head_width)
    angles = np.outer(np.arange(length, dtype=np.float32), frequencies)
    return np.stack([np.cos(angles), np.sin(angles)])

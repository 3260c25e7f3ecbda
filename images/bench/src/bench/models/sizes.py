"""How wide and how deep the models are, once for their definitions and for the count of their operations."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """The layers of a language model of Llama's shape (arXiv 2407.21783, table 3)."""

    width: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    """Heads of keys and values, each shared by `num_heads / num_kv_heads` heads of queries."""
    mlp_width: int
    vocabulary_size: int
    is_tied: bool
    """Whether the embedding's weights are those of the last layer too."""

    @property
    def head_width(self) -> int:
        return self.width // self.num_heads

    @property
    def kv_width(self) -> int:
        return self.num_kv_heads * self.head_width

    def make_rotation(self, length: int) -> NDArray[np.float32]:
        """Return cosines and sines (2, length, head_width / 2) of the rotary positions (arXiv 2104.09864)."""
        frequencies = 1 / ROTARY_BASE ** (np.arange(0, self.head_width, 2, dtype=np.float32) / self.head_width)
        angles = np.outer(np.arange(length, dtype=np.float32), frequencies)
        return np.stack([np.cos(angles), np.sin(angles)])


ROTARY_BASE = np.float32(500_000)
RMS_EPSILON = 1e-5
# The configurations of meta-llama/Llama-3.2-1B and Llama-3.1-8B, without the scaling of positions beyond 8,192.
DECODERS = {
    "llama-tiny": Decoder(
        width=256, num_layers=4, num_heads=8, num_kv_heads=4, mlp_width=768, vocabulary_size=8_192, is_tied=True
    ),
    "llama-1b": Decoder(
        width=2048, num_layers=16, num_heads=32, num_kv_heads=8, mlp_width=8192, vocabulary_size=128_256, is_tied=True
    ),
    "llama-8b": Decoder(
        width=4096, num_layers=32, num_heads=32, num_kv_heads=8, mlp_width=14336, vocabulary_size=128_256, is_tied=False
    ),
}
PATCH_SIZE = 16
VIT_ENCODER = Encoder(width=768, num_layers=12, num_heads=12, mlp_width=3072)
TEXT_ENCODER = Encoder(width=256, num_layers=4, num_heads=4, mlp_width=1024)
GENERATOR_BLOCKS = 9

"""Builds ViT-B/16 in Keras 3, with the layers of torchvision's vit_b_16."""

import math
from typing import Any

import keras
from keras import layers, ops
from keras.initializers import GlorotUniform, RandomNormal

from bench.models.keras.image_layers import convolve, make_image_input
from bench.models.keras.initializers import torch_uniform
from bench.schema import Cell

PATCH_SIZE = 16
WIDTH = 768
NUM_LAYERS = 12
NUM_HEADS = 12
MLP_WIDTH = 3072


class ClassToken(layers.Layer):
    """Puts a learned vector in front of the patches (batch, length, width)."""

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Create the weights (1, 1, width)."""
        self.class_token = self.add_weight(shape=(1, 1, input_shape[-1]), initializer="zeros", name="class_token")

    def call(self, x: Any) -> Any:
        """Return (batch, 1 + length, width)."""
        token = ops.broadcast_to(self.class_token, (ops.shape(x)[0], 1, x.shape[-1]))
        return ops.concatenate([token, x], axis=1)


class PositionEmbedding(layers.Layer):
    """Adds a learned vector to every position of (batch, length, width)."""

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Create the weights (1, length, width)."""
        shape = (1, *input_shape[1:])
        self.pos_embedding = self.add_weight(shape=shape, initializer=RandomNormal(stddev=0.02), name="pos_embedding")

    def call(self, x: Any) -> Any:
        """Return a tensor of x's shape."""
        return x + self.pos_embedding


def build(cell: Cell) -> keras.Model:
    """Return ViT-B/16 for images of `input_size`, channels last: 86,567,656 parameters at 224 px and 1000 classes.

    As in torchvision (models/vision_transformer.py): norms before attention and MLP, epsilon 1e-6, biases everywhere,
    the exact GELU, no dropout, the class token's last state into the head, which starts at zero.
    """
    inputs = make_image_input(cell.input_size)
    # torchvision truncates this normal distribution at +-2, 55 standard deviations: not at all.
    initializer = RandomNormal(stddev=math.sqrt(1 / (3 * PATCH_SIZE**2)))
    patches = convolve(inputs, WIDTH, PATCH_SIZE, padding=0, stride=PATCH_SIZE, kernel_initializer=initializer)
    x = layers.Reshape((patches.shape[1] * patches.shape[2], WIDTH))(patches)
    x = PositionEmbedding()(ClassToken()(x))
    for _ in range(NUM_LAYERS):
        x = layers.Add()([x, _attend(_normalize(x))])
        x = layers.Add()([x, _apply_mlp(_normalize(x))])
    class_state = _normalize(x)[:, 0]
    return keras.Model(inputs, layers.Dense(cell.num_classes, kernel_initializer="zeros")(class_state))


def _attend(x: Any) -> Any:
    length, head_width = x.shape[1], WIDTH // NUM_HEADS
    query_key_value = layers.Dense(3 * WIDTH, kernel_initializer=GlorotUniform())(x)
    heads = layers.Reshape((length, 3, NUM_HEADS, head_width))(query_key_value)
    query, key, value = (heads[:, :, index] for index in range(3))
    attended = ops.dot_product_attention(query, key, value, scale=head_width**-0.5)
    return layers.Dense(WIDTH, kernel_initializer=torch_uniform(WIDTH))(layers.Reshape((length, WIDTH))(attended))


def _apply_mlp(x: Any) -> Any:
    return _connect(_connect(x, MLP_WIDTH, activation="gelu"), WIDTH)  # exact, not approximated by tanh


def _connect(x: Any, num_outputs: int, **options: Any) -> Any:
    weights, bias = GlorotUniform(), RandomNormal(stddev=1e-6)
    return layers.Dense(num_outputs, kernel_initializer=weights, bias_initializer=bias, **options)(x)


def _normalize(x: Any) -> Any:
    return layers.LayerNormalization(epsilon=1e-6)(x)

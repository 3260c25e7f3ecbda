"""Builds a small Transformer encoder that classifies texts, in Keras 3.

Has the layers of bench.models.torch.text_classifier, which states the definition.
"""

from typing import Any

import keras
from keras import layers, ops

from bench.schema import Cell
from bench.tasks.inputs import VOCABULARY_SIZE

WIDTH = 256
NUM_LAYERS = 4
NUM_HEADS = 4
FEED_FORWARD_WIDTH = 1024


class Positions(layers.Layer):
    """Adds a learned vector to every position of (batch, length, width)."""

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Create the weights (length, width)."""
        self.positions = self.add_weight(shape=input_shape[1:], initializer=_make_initializer(), name="positions")

    def call(self, x: Any) -> Any:
        """Return a tensor of x's shape."""
        return x + self.positions


def build(cell: Cell) -> keras.Model:
    """Return the classifier for texts of `input_size` tokens: 8,312,834 parameters at 128 tokens and 2 classes."""
    tokens = keras.Input((cell.input_size,), dtype="int32")
    x = layers.Embedding(VOCABULARY_SIZE, WIDTH, embeddings_initializer=_make_initializer())(tokens)
    x = Positions()(x)
    for _ in range(NUM_LAYERS):
        x = layers.Add()([x, _attend(_normalize(x))])
        x = layers.Add()([x, _feed_forward(_normalize(x))])
    x = layers.GlobalAveragePooling1D()(_normalize(x))
    return keras.Model(tokens, _connect(x, cell.num_classes))


def _attend(x: Any) -> Any:
    length, head_width = x.shape[1], WIDTH // NUM_HEADS
    heads = layers.Reshape((length, 3, NUM_HEADS, head_width))(_connect(x, 3 * WIDTH))
    query, key, value = (heads[:, :, index] for index in range(3))
    attended = ops.dot_product_attention(query, key, value, scale=head_width**-0.5)
    return _connect(layers.Reshape((length, WIDTH))(attended), WIDTH)


def _feed_forward(x: Any) -> Any:
    return _connect(_connect(x, FEED_FORWARD_WIDTH, activation="gelu"), WIDTH)  # exact, not approximated by tanh


def _normalize(x: Any) -> Any:
    return layers.LayerNormalization(epsilon=1e-5)(x)  # PyTorch's; Keras's own is 1e-3


def _connect(x: Any, num_outputs: int | None, **options: Any) -> Any:
    return layers.Dense(num_outputs, kernel_initializer=_make_initializer(), **options)(x)


def _make_initializer() -> Any:
    return keras.initializers.RandomNormal(stddev=0.02)

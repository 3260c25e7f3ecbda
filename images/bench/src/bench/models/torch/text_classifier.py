"""Builds a small Transformer encoder that classifies texts, in PyTorch.

The definition, of this project: token embeddings (20,000 x 256) plus learned positions (length x 256); four layers,
each x + attention(norm(x)) with 4 heads of 64, then x + feed-forward(norm(x)) of width 1024 with the exact GELU; a last
norm, the mean over the tokens, one dense layer. Norms are layer norms with epsilon 1e-5, all dense layers have biases,
no dropout, no mask: every text fills its length. 8,312,834 parameters at 128 tokens and 2 classes. Weights N(0, 0.02),
biases zero, as BERT's in Hugging Face's transformers (BertConfig.initializer_range).
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from bench.schema import Cell
from bench.tasks.inputs import VOCABULARY_SIZE

WIDTH = 256
NUM_LAYERS = 4
NUM_HEADS = 4
FEED_FORWARD_WIDTH = 1024


class TextClassifier(nn.Module):
    """The whole model: maps tokens (batch, length) of int64 to logits (batch, classes)."""

    def __init__(self, length: int, num_classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY_SIZE, WIDTH)
        self.positions = nn.Parameter(torch.empty(length, WIDTH).normal_(0.0, 0.02))
        self.layers = nn.Sequential(*(EncoderLayer() for _ in range(NUM_LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits (batch, classes) of tokens (batch, length)."""
        x = self.layers(self.embedding(tokens) + self.positions)
        logits: Tensor = self.head(self.norm(x).mean(dim=1))
        return logits


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each behind a norm and added to its input: (batch, length, 256)."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.projection = nn.Linear(WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, FEED_FORWARD_WIDTH), nn.GELU(), nn.Linear(FEED_FORWARD_WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of x's shape."""
        x = x + self._attend(self.attention_norm(x))
        summed: Tensor = x + self.feed_forward(x)
        return summed

    def _attend(self, x: Tensor) -> Tensor:
        # (batch, length, 3, heads, 64) -> three of (batch, heads, length, 64)
        heads = self.query_key_value(x).unflatten(-1, (3, NUM_HEADS, -1)).transpose(1, 3)
        attended = scaled_dot_product_attention(*heads.unbind(dim=2))
        projected: Tensor = self.projection(attended.transpose(1, 2).flatten(start_dim=2))
        return projected


def build(cell: Cell) -> nn.Module:
    """Return the classifier for texts of `input_size` tokens."""
    assert cell.num_classes is not None
    return TextClassifier(cell.input_size, cell.num_classes).apply(_initialize)


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, 0.0, 0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)

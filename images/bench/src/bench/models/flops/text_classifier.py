"""Counts the cost of a step of the text classifier."""

from dataclasses import replace

from bench.models.flops.layers import (
    ELEMENT_BYTES,
    Layer,
    StepCost,
    connect,
    count_classifier,
    list_encoder_layer,
    normalize,
)
from bench.schema import Cell
from bench.tasks.inputs import VOCABULARY_SIZE

WIDTH = 256
FEED_FORWARD_WIDTH = 1024
NUM_LAYERS = 4
TOKEN_BYTES = 4


def count(cell: Cell) -> StepCost:
    """Return the cost of one step: the embedding, which learns and multiplies nothing, four layers, one dense layer.

    A fused attention computes the products of queries and keys once more in the backward pass; they are not counted.
    Inference reads only the embeddings of the tokens that occur: the expected number of different ones in a batch of
    tokens drawn evenly, as synthetic ones are. Adam moves every embedding in every step, also those without gradient.
    """
    assert cell.num_classes is not None
    embedding = Layer(macs=0, num_parameters=(VOCABULARY_SIZE + cell.input_size) * WIDTH)
    encoder = NUM_LAYERS * list_encoder_layer(cell.input_size, WIDTH, FEED_FORWARD_WIDTH)
    layers = [embedding, *encoder, normalize(WIDTH), connect(WIDTH, cell.num_classes)]
    cost = count_classifier(cell, layers, input_bytes_per_sample=cell.input_size * TOKEN_BYTES)
    if cell.phase == "train":
        return cost
    unread = VOCABULARY_SIZE * (1 - 1 / VOCABULARY_SIZE) ** (cell.batch_size * cell.input_size)
    return replace(cost, min_bytes=cost.min_bytes - round(unread) * WIDTH * ELEMENT_BYTES[cell.precision])

"""Counts the cost of a step of ViT-B/16."""

from bench.models.flops.layers import (
    Layer,
    StepCost,
    connect,
    convolve,
    count_classifier,
    count_image_bytes,
    list_encoder_layer,
    normalize,
)
from bench.schema import Cell

PATCH_SIZE = 16
WIDTH = 768
NUM_LAYERS = 12
MLP_WIDTH = 3072


def count(cell: Cell) -> StepCost:
    """Return the cost of one step: patches, twelve layers over them and the class token, a dense layer.

    A fused attention computes the products of queries and keys once more in the backward pass; they are not counted.
    """
    assert cell.num_classes is not None
    side = cell.input_size // PATCH_SIZE
    length = side**2 + 1
    embeddings = Layer(macs=0, num_parameters=(1 + length) * WIDTH)  # the class token and the positions
    encoder = NUM_LAYERS * list_encoder_layer(length, WIDTH, MLP_WIDTH)
    patches = convolve(3, WIDTH, PATCH_SIZE, side, stride=PATCH_SIZE)
    layers = [patches, embeddings, *encoder, normalize(WIDTH)]
    layers.append(connect(WIDTH, cell.num_classes))
    return count_classifier(cell, layers, input_bytes_per_sample=count_image_bytes(cell))

"""Counts the cost of a step of Conv6."""

from bench.models.flops.layers import StepCost, connect, convolve, count_classifier, count_image_bytes
from bench.schema import Cell


def count(cell: Cell) -> StepCost:
    """Return the cost of one step: three pairs of convolutions, each pair at half the size, and three dense layers."""
    assert cell.num_classes is not None
    size, num_channels = cell.input_size, 3
    layers = []
    for width in (64, 128, 256):
        layers += [convolve(num_channels, width, 3, size), convolve(width, width, 3, size)]
        size, num_channels = size // 2, width
    layers += [connect(num_channels * size**2, 256), connect(256, 256), connect(256, cell.num_classes)]
    return count_classifier(cell, layers, input_bytes_per_sample=count_image_bytes(cell))

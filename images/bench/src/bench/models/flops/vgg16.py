"""Counts the cost of a step of VGG16."""

from bench.models.flops.layers import StepCost, connect, convolve, count_classifier, count_image_bytes
from bench.schema import Cell

# Channels of the convolutions of each stage; a pooling by two follows each.
STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
POOLED_SIZE = 7  # whatever the input's size, the adaptive pooling hands 7 x 7 to the dense layers


def count(cell: Cell) -> StepCost:
    """Return the cost of one step: 13 convolutions of 3x3 and three dense layers."""
    assert cell.num_classes is not None
    size, num_channels = cell.input_size, 3
    layers = []
    for widths in STAGES:
        for width in widths:
            layers.append(convolve(num_channels, width, 3, size))
            num_channels = width
        size //= 2
    layers += [connect(num_channels * POOLED_SIZE**2, 4096), connect(4096, 4096), connect(4096, cell.num_classes)]
    return count_classifier(cell, layers, input_bytes_per_sample=count_image_bytes(cell))

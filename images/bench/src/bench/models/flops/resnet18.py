"""Counts the cost of a step of ResNet18 with the ImageNet stem, and that of its stages for other stems."""

from bench.models.flops.layers import (
    Layer,
    StepCost,
    compute_output_size,
    connect,
    convolve,
    count_classifier,
    count_image_bytes,
    normalize,
)
from bench.schema import Cell

# (channels, stride of the first block) of the four stages, two basic blocks each.
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


def count(cell: Cell) -> StepCost:
    """Return the cost of one step: a 7x7 stem of stride 2, max-pooling, four stages and a dense layer."""
    stem, size = count_stem(cell)
    return count_with_stem(cell, stem, size)


def count_stem(cell: Cell) -> tuple[Layer, int]:
    """Return the 7x7 convolution to 64 channels, without its norm, and the height and width after the max-pooling."""
    size = compute_output_size(cell.input_size, 7, stride=2, padding=3)
    return convolve(3, 64, 7, size, stride=2, has_bias=False), compute_output_size(size, 3, stride=2, padding=1)


def count_with_stem(cell: Cell, stem: Layer, size: int) -> StepCost:
    """Return the cost of one step behind `stem`, which leaves 64 channels of `size` x `size`."""
    assert cell.num_classes is not None
    layers = [stem, normalize(64)]
    num_channels = 64
    for width, stride in STAGES:
        size = compute_output_size(size, 3, stride=stride, padding=1)
        layers += _list_block(num_channels, width, size, stride=stride)
        layers += _list_block(width, width, size, stride=1)
        num_channels = width
    layers.append(connect(num_channels, cell.num_classes))
    return count_classifier(cell, layers, input_bytes_per_sample=count_image_bytes(cell))


def _list_block(in_channels: int, width: int, out_size: int, *, stride: int) -> list[Layer]:
    layers = [convolve(in_channels, width, 3, out_size, stride=stride, has_bias=False), normalize(width)]
    layers += [convolve(width, width, 3, out_size, has_bias=False), normalize(width)]
    if stride != 1:
        layers += [convolve(in_channels, width, 1, out_size, stride=stride, has_bias=False), normalize(width)]
    return layers

"""Counts the cost of a step of ResNet50."""

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
from bench.models.flops.resnet18 import count_stem
from bench.schema import Cell

# (channels of the 3x3 convolutions, blocks, stride of the first block) of the four stages.
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
EXPANSION = 4


def count(cell: Cell) -> StepCost:
    """Return the cost of one step: a 7x7 stem of stride 2, max-pooling, four stages and a dense layer."""
    assert cell.num_classes is not None
    stem, size = count_stem(cell)
    layers = [stem, normalize(64)]
    num_channels = 64
    for width, num_blocks, stride in STAGES:
        layers += _list_bottleneck(num_channels, width, size, stride=stride, has_shortcut=True)
        num_channels, size = EXPANSION * width, compute_output_size(size, 3, stride=stride, padding=1)
        for _ in range(num_blocks - 1):
            layers += _list_bottleneck(num_channels, width, size, stride=1, has_shortcut=False)
    layers.append(connect(num_channels, cell.num_classes))
    return count_classifier(cell, layers, input_bytes_per_sample=count_image_bytes(cell))


def _list_bottleneck(in_channels: int, width: int, in_size: int, *, stride: int, has_shortcut: bool) -> list[Layer]:
    out_channels, out_size = EXPANSION * width, compute_output_size(in_size, 3, stride=stride, padding=1)
    layers = [convolve(in_channels, width, 1, in_size, has_bias=False), normalize(width)]
    # v1.5: the stride is here
    layers += [convolve(width, width, 3, out_size, stride=stride, has_bias=False), normalize(width)]
    layers += [convolve(width, out_channels, 1, out_size, has_bias=False), normalize(out_channels)]
    if has_shortcut:
        shortcut = convolve(in_channels, out_channels, 1, out_size, stride=stride, has_bias=False)
        layers += [shortcut, normalize(out_channels)]
    return layers

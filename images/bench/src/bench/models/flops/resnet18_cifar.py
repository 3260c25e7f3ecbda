"""Counts the cost of a step of ResNet18 with the CIFAR stem."""

from bench.models.flops.layers import StepCost, convolve
from bench.models.flops.resnet18 import count_with_stem
from bench.schema import Cell


def count(cell: Cell) -> StepCost:
    """Return the cost of one step: a 3x3 stem of stride 1 without pooling, then ResNet18's stages."""
    return count_with_stem(cell, convolve(3, 64, 3, cell.input_size, has_bias=False), cell.input_size)

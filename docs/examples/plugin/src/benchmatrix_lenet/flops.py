"""What a step of LeNet-5 costs."""

from bench.models.flops import StepCost, connect, convolve, count_classifier
from bench.schema import Cell


def count_lenet5(cell: Cell) -> StepCost:
    first = cell.input_size - 4
    second = first // 2 - 4
    layers = [convolve(3, 6, 5, first), convolve(6, 16, 5, second)]
    return count_classifier(cell, [*layers, connect(16 * (second // 2) ** 2, 120), connect(120, 84)], 84)

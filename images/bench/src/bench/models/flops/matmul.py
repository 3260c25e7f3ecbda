"""Counts the cost of a step of the matrix product."""

from bench.models.flops.layers import ELEMENT_BYTES, StepCost
from bench.schema import Cell


def count(cell: Cell) -> StepCost:
    """Return the cost of one step: n^3 multiply-adds for each pair; two matrices are read, one is written."""
    flops = 2 * cell.batch_size * cell.input_size**3
    return StepCost(
        flops=flops,
        least_flops=flops,  # no library that the frameworks call has Strassen's algorithm
        min_bytes=3 * cell.batch_size * cell.input_size**2 * ELEMENT_BYTES[cell.precision],
        num_parameters=0,
    )

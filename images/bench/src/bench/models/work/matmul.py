"""The work of the matrix product: a Cell in, Work out."""

from bench.models.work.layers import ELEMENT_BYTES, Work
from bench.schema import Cell


def count(cell: Cell) -> Work:
    """Return the work of one step: n^3 multiply-adds for each pair; two matrices are read, one is written."""
    return Work(
        flops=2 * cell.batch_size * cell.input_size**3,
        min_bytes=3 * cell.batch_size * cell.input_size**2 * ELEMENT_BYTES[cell.precision],
        num_parameters=0,
    )

"""Builds the matrix product in PyTorch: a module without parameters."""

from torch import Tensor, nn

from bench.schema import Cell


class MatrixProduct(nn.Module):
    """The product of two stacks of square matrices."""

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Return left @ right, all three (batch, size, size)."""
        return left @ right


def build(cell: Cell) -> nn.Module:
    """Return the module that multiplies two stacks, of any size."""
    return MatrixProduct()

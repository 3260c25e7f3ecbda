"""The matrix product in PyTorch: a Cell in, an nn.Module without parameters out."""

from torch import Tensor, nn

from bench.schema import Cell


class MatrixProduct(nn.Module):
    """The product of two stacks of square matrices."""

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Return left @ right, all three (batch, size, size)."""
        return left @ right


def build(cell: Cell) -> nn.Module:
    """Return the module that multiplies; sizes come with its inputs."""
    return MatrixProduct()

"""Runs the matrix product in PyTorch."""

from torch import Tensor, nn

from bench.tasks.torch.interface import Part


class MatrixProduct:
    """The product of two stacks of square matrices; nothing is trained."""

    parts: tuple[Part, ...] = ()

    def __init__(self, product: nn.Module) -> None:
        self.networks = {"product": product}

    def infer(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the products (batch, size, size)."""
        product: Tensor = self.networks["product"](left, right)
        return product

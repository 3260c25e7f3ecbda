"""Runs the matrix product in Keras."""

from collections.abc import Callable

from bench.tasks.keras.interface import Part, Tensor


class MatrixProduct:
    """The product of two stacks of square matrices; nothing is trained."""

    parts: tuple[Part, ...] = ()

    def __init__(self, product: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.networks = {"product": product}

    def infer(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the products (batch, size, size)."""
        return self.networks["product"](left, right)

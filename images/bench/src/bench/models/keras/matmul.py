"""Builds the matrix product in Keras 3: a model without weights."""

from typing import Any

import keras

from bench.schema import Cell


class MatrixProduct(keras.Model):
    """The product of two stacks of square matrices, in the dtype that the policy computes in."""

    def call(self, left: Any, right: Any) -> Any:
        """Return left @ right, all three (batch, size, size)."""
        return keras.ops.matmul(left, right)


def build(cell: Cell) -> keras.Model:
    """Return the model that multiplies two stacks, of any size."""
    return MatrixProduct()

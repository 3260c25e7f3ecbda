"""Synthetic batches: a Cell in, NumPy images and labels out; the same in every framework."""

import numpy as np
from numpy.typing import NDArray

from bench.schema import Cell


def make_batch(cell: Cell) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return images (batch, 3, size, size) of standard normal values and labels (batch,) below `num_classes`."""
    generator = np.random.default_rng(cell.seed)
    images = generator.standard_normal((cell.batch_size, 3, cell.input_size, cell.input_size), dtype=np.float32)
    labels = generator.integers(0, cell.num_classes, cell.batch_size)
    return images, labels

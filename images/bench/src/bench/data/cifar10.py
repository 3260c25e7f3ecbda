"""Reads CIFAR-10's binary files as a sequence of images with labels. Imports no framework."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.data.preprocessing import CIFAR_RECORD_BYTES, CIFAR_SIDE


class Cifar10Records:
    """The images of several files, one file after the other.

    Read from the file at each access, so that worker processes get paths and share the page cache.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._ends = np.cumsum([path.stat().st_size // CIFAR_RECORD_BYTES for path in paths])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> tuple[NDArray[np.uint8], int]:
        """Return the image (3, 32, 32), red, green, blue, and its label."""
        file = int(np.searchsorted(self._ends, index, side="right"))
        row = index - (int(self._ends[file - 1]) if file else 0)
        record = np.fromfile(
            self._paths[file], dtype=np.uint8, count=CIFAR_RECORD_BYTES, offset=row * CIFAR_RECORD_BYTES
        )
        return record[1:].reshape(3, CIFAR_SIDE, CIFAR_SIDE), int(record[0])

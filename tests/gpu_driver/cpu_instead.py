"""Takes the place of bench.frameworks.pytorch in a container: real PyTorch computes a GPU cell on the CPU.

So a GPU cell is measured to its end where CUDA is missing; its verdict has to say that the device was the wrong one.
"""

from typing import Any

from bench.frameworks import real_pytorch  # type: ignore[attr-defined]  # the module whose place this one has taken
from bench.schema import Cell


class OnCpu:
    """PyTorch, set up for a cell's twin on the CPU."""

    def __init__(self, cell: Cell, num_threads: int) -> None:
        self._framework: Any = real_pytorch.load(_move_to_cpu(cell), num_threads)

    def build_workload(self, cell: Cell) -> Any:
        return self._framework.build_workload(_move_to_cpu(cell))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._framework, name)


def load(cell: Cell, num_threads: int) -> OnCpu:
    return OnCpu(cell, num_threads)


def _move_to_cpu(cell: Cell) -> Cell:
    return cell.model_copy(update={"device": "cpu"})

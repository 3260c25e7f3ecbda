"""The switches of PyTorch that hold for a whole process."""

import torch

from bench.schema import Cell


def set_switches(cell: Cell, num_threads: int) -> None:
    """Set what holds for a whole process: threads, TF32 and cuDNN's choice of algorithms."""
    torch.set_num_threads(num_threads)
    torch.backends.cuda.matmul.allow_tf32 = cell.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = cell.precision == "tf32"
    # Every step has the same shapes: cuDNN may try its algorithms once, in the first step, and keep the fastest.
    torch.backends.cudnn.benchmark = True

"""Checks that this container has the memory, disk and GPUs that its cell needs, before anything is imported."""

import shutil
import tempfile
from collections.abc import Iterator

from bench.errors import UserError
from bench.order import Order
from bench.probes.gpu import read_gpu_baselines
from bench.probes.memory import read_memory_limit_bytes
from bench.schema import Cell, GpuUse
from bench.validity.neighbours import MAX_FOREIGN_BYTES

# What importing the largest framework and building a small model takes.
MIN_MEMORY_BYTES = 1024**3
# Caches of compiled kernels and of the host's peak.
MIN_DISK_BYTES = 64 * 1024**2


class DeviceInUseError(UserError):
    """Another process uses the GPU: a later try, or another node, may succeed."""


def check_place(order: Order) -> None:
    """Raise UserError with everything that this container lacks for the cell, or DeviceInUseError for a busy GPU."""
    gpus, gpu_errors = _look_at_gpus(order.cell)
    errors = [*_list_memory_errors(), *_list_disk_errors(), *gpu_errors]
    if errors:
        raise UserError(f"{order.cell.slug} cannot be measured here: {'; '.join(errors)}")
    _refuse_foreign_users(order.cell, gpus)


def _list_memory_errors() -> Iterator[str]:
    limit = read_memory_limit_bytes()
    if limit is not None and limit < MIN_MEMORY_BYTES:
        yield f"memory: the container may take {limit / 1024**2:.0f} MiB, a framework alone needs a GiB"


def _list_disk_errors() -> Iterator[str]:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < MIN_DISK_BYTES:
        yield f"disk: {folder} has {free / 1024**2:.0f} MiB left, {MIN_DISK_BYTES / 1024**2:.0f} are needed"


def _look_at_gpus(cell: Cell) -> tuple[tuple[GpuUse, ...], list[str]]:
    """Return the present use of the cell's GPUs and what is missing of them; both are empty for a cell on a CPU."""
    if cell.device != "gpu":
        return (), []
    try:
        gpus = read_gpu_baselines(cell.num_gpus)
    except Exception as error:  # whatever NVML says: without it there is no GPU to measure
        return (), [f"device: no NVIDIA GPU can be seen ({type(error).__name__}: {error})"]
    if len(gpus) < cell.num_gpus:
        seen = "GPU" if len(gpus) == 1 else "GPUs"
        mig = " (a process sees one MIG slice, and no whole GPU beside it)" if any(gpu.is_slice for gpu in gpus) else ""
        return gpus, [f"device: {len(gpus)} {seen} can be seen{mig}, the cell needs {cell.num_gpus}"]
    return gpus, []


def _refuse_foreign_users(cell: Cell, gpus: tuple[GpuUse, ...]) -> None:
    for gpu in gpus:
        used, processes = gpu.memory_used_before_bytes or 0, len(gpu.foreign_processes)
        if processes or used > MAX_FOREIGN_BYTES:
            raise DeviceInUseError(
                f"{cell.slug} is not measured here: GPU {gpu.uuid} is in use by others, {processes} processes seen, "
                f"{used / 1024**2:.0f} MiB taken"
            )

"""Looks at a cell's GPUs while the measured process still holds them: who else uses them, and what is free."""

from collections.abc import Collection, Sequence
from typing import Any

from bench.probes.nvml import Device, open_nvml
from bench.probes.visible_gpus import find_visible_devices
from bench.schema import ForeignProcess, GpuUse


def look_for_neighbours(baselines: Sequence[GpuUse], own_pids: Collection[int]) -> tuple[GpuUse, ...]:
    """Return `baselines` with the users of each GPU other than `own_pids`, who must be using the GPUs now."""
    with open_nvml():
        devices = find_visible_devices(len(baselines))
        return tuple(_look_at_device(use, device, own_pids) for use, device in zip(baselines, devices, strict=True))


def _look_at_device(use: GpuUse, device: Device, own_pids: Collection[int]) -> GpuUse:
    """Return `use` with what is known now.

    A container may see no process, or processes by the numbers of its host: who does not see itself sees nobody.
    """
    processes = device.read_compute_processes() or ()
    own = [process for process in processes if process.pid in own_pids]
    free: dict[str, Any] = {"memory_free_after_bytes": device.read_memory_free_bytes()}
    if not own:
        return use.model_copy(update={"processes_visible": False} | free)
    used = device.read_memory_used_bytes()
    update: dict[str, Any] = {
        "processes_visible": True,
        "foreign_processes_after": tuple(process for process in processes if process.pid not in own_pids),
        "foreign_memory_after_bytes": None if used is None else _subtract_own(used, own),
    }
    return use.model_copy(update=update | free)


def _subtract_own(used_bytes: int, own: Sequence[ForeignProcess]) -> int | None:
    """Return what is left of the memory in use without that of `own`; None where one of these is not known."""
    sizes = [process.memory_bytes for process in own]
    if None in sizes:
        return None
    return max(0, used_bytes - sum(size for size in sizes if size is not None))

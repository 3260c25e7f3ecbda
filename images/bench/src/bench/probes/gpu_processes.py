"""Finds the GPUs and MIG slices that CUDA shows to this process, in CUDA's order, and who else uses them.

NVIDIA's MIG user guide ("CUDA device enumeration"): a process sees one MIG slice at most, the first one that is
available to it, and no GPU beside it that is not in MIG mode.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pynvml

from bench.probes.nvml import Device, NvmlError, open_nvml
from bench.schema import GpuUse


def find_visible_devices(num_gpus: int) -> list[Device]:
    """Return the first `num_gpus` devices that CUDA shows to this process, fewer where it shows fewer.

    CUDA_VISIBLE_DEVICES holds indexes in the order of the PCI bus, UUIDs, or their beginnings; unset: every device. A
    GPU in MIG mode stands for its first slice. Raises NvmlError for a device that is not there.
    """
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        handles = _list_gpus()
    else:
        handles = [_find_handle(entry.strip()) for entry in text.split(",") if entry.strip()]
    slices = [mig_slice for handle in handles for mig_slice in list_slices(handle)]
    whole = [handle for handle in handles if not _is_partitioned(handle)]
    return [Device(handle) for handle in slices[:1] or whole[:num_gpus]]


def restrict_to_cell(num_gpus: int) -> None:
    """Set CUDA_VISIBLE_DEVICES to the UUIDs of the cell's GPUs: frameworks open contexts on all that they see.

    For this process and those that it starts. Nothing is changed where the cell has no GPU here, or NVML cannot say.
    """
    try:
        with open_nvml():
            uuids = [device.uuid for device in find_visible_devices(num_gpus)]
    except NvmlError:
        return
    if uuids:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(uuids)


def _list_gpus() -> list[Any]:
    return [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]


def _find_handle(entry: str) -> Any:
    if entry.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(entry))
    if entry.startswith("GPU-"):
        for handle in _list_gpus():
            if pynvml.nvmlDeviceGetUUID(handle).startswith(entry):
                return handle
    return pynvml.nvmlDeviceGetHandleByUUID(entry)


def _is_slice(handle: Any) -> bool:
    return str(pynvml.nvmlDeviceGetUUID(handle)).startswith("MIG-")


def _is_partitioned(handle: Any) -> bool:
    """Return whether a GPU is in MIG mode; CUDA does not show it as a whole then. False before Ampere."""
    try:
        return not _is_slice(handle) and pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    except NvmlError:
        return False


def list_slices(handle: Any) -> Iterator[Any]:
    """Yield a slice itself, or the slices of a GPU that this process may use; a container may use some only."""
    if _is_slice(handle):
        yield handle
    elif _is_partitioned(handle):
        for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            except NvmlError:
                continue


MPS_PROGRAM = "nvidia-cuda-mps"
"""How the names of MPS's own processes begin, which the kernel cuts to 15 characters (proc_pid_comm(5))."""


@dataclass(frozen=True, kw_only=True)
class DeviceMemory:
    """What is in use on a GPU."""

    used_bytes: int | None = None
    """Of all processes together; None: not known."""
    by_process: Mapping[int, int] = field(default_factory=dict)
    """Of each process of which NVML says it."""


def look_for_neighbours(
    baselines: Sequence[GpuUse], own_pids: Collection[int], *, is_under_mps: bool = False
) -> tuple[GpuUse, ...]:
    """Return `baselines` with the users of each GPU other than `own_pids`, who must be using the GPUs now.

    `is_under_mps`: MPS's server is one of them.
    """
    with open_nvml():
        devices = find_visible_devices(len(baselines))
        return tuple(
            _look_at_device(use, device, own_pids, is_under_mps) for use, device in zip(baselines, devices, strict=True)
        )


def _look_at_device(use: GpuUse, device: Device, own_pids: Collection[int], is_under_mps: bool) -> GpuUse:
    """Return `use` with what is known now.

    A container may see no process, or processes by the numbers of its host: who does not see itself sees nobody.
    """
    processes = device.read_compute_processes() or ()
    if is_under_mps:
        own_pids = {*own_pids, *find_mps_servers([process.pid for process in processes])}
    own = [process for process in processes if process.pid in own_pids]
    used, free = device.read_memory_bytes()
    update: dict[str, Any] = {"memory_free_after_bytes": free, "processes_visible": bool(own)}
    if own:
        sizes = [process.memory_bytes for process in own]
        is_known = used is not None and None not in sizes
        update |= {
            "foreign_processes_after": tuple(process for process in processes if process.pid not in own_pids),
            "foreign_memory_after_bytes": max(0, (used or 0) - sum(filter(None, sizes))) if is_known else None,
        }
    return use.model_copy(update=update)


def read_device_memory() -> DeviceMemory:
    with open_nvml():
        device = find_visible_devices(1)[0]
        processes = device.read_compute_processes() or ()
        sizes = {process.pid: process.memory_bytes for process in processes if process.memory_bytes is not None}
        return DeviceMemory(used_bytes=device.read_memory_bytes()[0], by_process=sizes)


def leave_out_mps(use: GpuUse) -> GpuUse:
    """Return `use` without the processes of MPS among those that were there before: they compute for the cell."""
    before = use.foreign_processes or ()
    servers = find_mps_servers([process.pid for process in before])
    left = tuple(process for process in before if process.pid not in servers)
    return use.model_copy(update={"foreign_processes": left}) if servers else use


def find_mps_servers(pids: Collection[int]) -> frozenset[int]:
    found = set()
    for pid in pids:
        with suppress(OSError):  # of another namespace, or ended
            if Path(f"/proc/{pid}/comm").read_text(errors="replace").startswith(MPS_PROGRAM):
                found.add(pid)
    return frozenset(found)

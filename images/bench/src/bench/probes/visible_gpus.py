"""Finds the GPUs and MIG slices that CUDA shows to this process, in CUDA's order.

NVIDIA's MIG user guide ("CUDA device enumeration"): a process sees one MIG slice at most, the first one that is
available to it, and no GPU beside it that is not in MIG mode.
"""

import os
from collections.abc import Iterator
from typing import Any

import pynvml

from bench.probes.nvml import Device, NvmlError, open_nvml


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
    slices = [mig_slice for handle in handles for mig_slice in _list_slices(handle)]
    whole = [handle for handle in handles if not _is_partitioned(handle)]
    return [Device(handle) for handle in slices[:1] or whole[:num_gpus]]


def count_gpus_without_slice() -> int:
    """Return how many GPUs are in MIG mode and have no slice that this process may use. NvmlError without a driver."""
    with open_nvml():
        return sum(_is_partitioned(handle) and not any(_list_slices(handle)) for handle in _list_gpus())


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


def _list_slices(handle: Any) -> Iterator[Any]:
    """Yield a slice itself, or the slices of a GPU that this process may use; a container may use some only."""
    if _is_slice(handle):
        yield handle
    elif _is_partitioned(handle):
        for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            except NvmlError:
                continue

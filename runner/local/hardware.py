"""Find the GPUs that this machine has for cells, and say why a cell cannot run here."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

import pynvml

from bench.schema import Cell
from bench.worker.compilers import explain_missing_compiler
from runner import capabilities
from runner.capabilities import GpuKind


def explain_unsupported(cell: Cell, gpu: GpuKind | None) -> str | None:
    """Return why this machine, which has the GPUs `gpu`, cannot run the cell, in one line; None if it can."""
    return capabilities.explain_unsupported(cell, gpu) or explain_missing_compiler(cell)


def list_slice_uuids() -> list[str]:
    """Return the UUIDs of the MIG slices of the first GPU in MIG mode that this process may use."""
    with _open_nvml() as is_there:
        handles = _list_visible(os.environ.get("CUDA_VISIBLE_DEVICES")) if is_there else []
        split = [handle for handle in handles if _is_slice(handle) or _is_in_mig_mode(handle)]
        if not split:
            return []
        if _is_slice(split[0]):  # chosen one by one
            return [_read_uuid(handle) for handle in split if _is_slice(handle)]
        return [_read_uuid(part) for part in _list_slices(split[0])]


def find_first_uuid() -> str | None:
    """Return the UUID of the device that a cell with one GPU uses; None if there is none."""
    with _open_nvml() as is_there:
        handles = _show_slices(_list_visible(os.environ.get("CUDA_VISIBLE_DEVICES"))) if is_there else []
        return _read_uuid(handles[0]) if handles else None


def is_exclusive() -> bool:
    """Return whether the first GPU lets in one process at a time, or none (`nvidia-smi -c`)."""
    with _open_nvml() as is_there:
        handles = _show_slices(_list_visible(os.environ.get("CUDA_VISIBLE_DEVICES"))) if is_there else []
        try:
            mode = pynvml.nvmlDeviceGetComputeMode(handles[0]) if handles else pynvml.NVML_COMPUTEMODE_DEFAULT
        except pynvml.NVMLError:  # a slice has no mode of its own
            return False
        return bool(mode != pynvml.NVML_COMPUTEMODE_DEFAULT)


@contextmanager
def _open_nvml() -> Iterator[bool]:
    """Keep NVML open, and yield whether it is there."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        pynvml.nvmlShutdown()


def _read_uuid(handle: Any) -> str:
    return str(pynvml.nvmlDeviceGetUUID(handle))


def find_gpu() -> GpuKind | None:
    """Return the GPUs that a cell's framework would see and use; None if there is no driver or no such GPU.

    A cell uses them in their order, and all GPUs of a cell have to be of one kind: those before the first of another
    kind are counted. CUDA_VISIBLE_DEVICES is respected.
    """
    with _open_nvml() as is_there:
        handles = _show_slices(_list_visible(os.environ.get("CUDA_VISIBLE_DEVICES"))) if is_there else []
        kinds = [_read_kind(handle) for handle in handles]
    if not kinds:
        return None
    name, compute_capability = kinds[0]
    num_gpus = sum(1 for _ in takewhile(lambda kind: kind == kinds[0], kinds))
    return GpuKind(name=name, compute_capability=compute_capability, num_gpus=num_gpus)


def _list_visible(chosen: str | None) -> list[Any]:
    """Return NVML's handles of the devices chosen, by index or start of the UUID, as CUDA reads the list; None: all.

    CUDA ignores the list from the first device on that does not exist.
    """
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    if chosen is None:
        return handles
    by_name = {str(index): handle for index, handle in enumerate(handles)}
    by_uuid = {pynvml.nvmlDeviceGetUUID(handle): handle for handle in handles}
    found = (_find_device(word.strip(), by_name, by_uuid) for word in chosen.split(","))
    return list(takewhile(lambda handle: handle is not None, found))


def _find_device(word: str, by_name: dict[str, Any], by_uuid: dict[str, Any]) -> Any | None:
    if word in by_name:
        return by_name[word]
    if word.startswith("MIG-"):  # a part of a GPU, which the list of devices does not name
        try:
            return pynvml.nvmlDeviceGetHandleByUUID(word)
        except pynvml.NVMLError:
            return None
    return next((handle for uuid, handle in by_uuid.items() if word.startswith("GPU-") and uuid.startswith(word)), None)


def _show_slices(handles: list[Any]) -> list[Any]:
    """Return what CUDA shows of these: a process sees one MIG slice at most, and no whole GPU beside it.

    A GPU in MIG mode is never shown as a whole (NVIDIA's MIG user guide, "CUDA device enumeration"; as
    `bench.probes.visible_gpus` has it for the process that measures).
    """
    is_split = {index: _is_slice(handle) or _is_in_mig_mode(handle) for index, handle in enumerate(handles)}
    slices = [part for index, handle in enumerate(handles) if is_split[index] for part in _list_slices(handle)]
    return slices[:1] or [handle for index, handle in enumerate(handles) if not is_split[index]]


def _is_slice(handle: Any) -> bool:
    return str(pynvml.nvmlDeviceGetUUID(handle)).startswith("MIG-")


def _is_in_mig_mode(handle: Any) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)
    except pynvml.NVMLError:  # before Ampere
        return False


def _list_slices(handle: Any) -> Iterator[Any]:
    if _is_slice(handle):
        yield handle
        return
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except pynvml.NVMLError:  # there are fewer, or this process may not use this one
            continue


def _read_kind(handle: Any) -> tuple[str, tuple[int, int]]:
    gpu = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle) if _is_slice(handle) else handle
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(gpu)
    return str(pynvml.nvmlDeviceGetName(handle)), (major, minor)

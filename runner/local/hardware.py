"""Find the GPUs and compilers that this machine has for cells, and say why a cell cannot run here."""

import os
import shutil
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pynvml

from bench import capabilities
from bench.capabilities import GpuKind
from bench.schema import Cell

# As torch._inductor.config.cpp.cxx and triton.runtime.build look for them.
CXX_COMPILERS = ("g++",)
C_COMPILERS = ("gcc", "clang")


def explain_unsupported(cell: Cell, gpu: GpuKind | None) -> str | None:
    """Return why this machine, which has the GPUs `gpu`, cannot run the cell, in one line; None if it can."""
    return capabilities.explain_unsupported(cell, gpu) or explain_missing_compiler(cell)


def find_gpu() -> GpuKind | None:
    """Return the GPUs that a cell's framework would see and use; None if there is no driver or no such GPU.

    A cell uses them in their order, and all GPUs of a cell have to be of one kind: those before the first of another
    kind are counted. CUDA_VISIBLE_DEVICES is respected.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        handles = _show_slices(_list_visible(os.environ.get("CUDA_VISIBLE_DEVICES")))
        kinds = [_read_kind(handle) for handle in handles]
    finally:
        pynvml.nvmlShutdown()
    if not kinds:
        return None
    name, compute_capability = kinds[0]
    num_gpus = sum(1 for _ in takewhile(lambda kind: kind == kinds[0], kinds))
    return GpuKind(name=name, compute_capability=compute_capability, num_gpus=num_gpus)


def explain_missing_compiler(cell: Cell) -> str | None:
    """Return which compiler torch.compile needs for the cell and this machine lacks; None if it lacks none.

    TorchInductor builds a CPU's kernels with a C++ compiler; Triton builds the launchers of GPU kernels with a C
    compiler.
    """
    if (cell.framework, cell.mode) != ("pytorch", "compiled"):
        return None
    language, variable, package, names = (
        ("C++", "CXX", "g++", CXX_COMPILERS) if cell.device == "cpu" else ("C", "CC", "gcc", C_COMPILERS)
    )
    chosen = os.environ.get(variable, "").split()[:1]  # arguments may follow: CXX="ccache g++"
    if any(shutil.which(name) for name in chosen or names):
        return None
    missing = f"{variable}={chosen[0]} is no program" if chosen else f"there is no {' or '.join(names)} on PATH"
    return (
        f"compiled PyTorch needs a {language} compiler, and {missing}; install one (Debian: apt-get install {package}) "
        f"or name one in {variable}"
    )


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

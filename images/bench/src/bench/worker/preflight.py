"""Checks that this container has what its cell needs: memory, disk, GPUs, a compiler; before anything is imported."""

import tempfile
from pathlib import Path

from bench.errors import UserError
from bench.probes.cuda import explain_failed_start
from bench.probes.gpu import GpuProbe, read_gpus
from bench.probes.memory import read_memory_limit_bytes
from bench.schema import Cell, GpuUse
from bench.verdicts.checks import MAX_FOREIGN_BYTES
from bench.worker.compilers import explain_missing_compiler
from bench.worker.failures import explain_full_disk, name_node_fault
from bench.worker.request import Order

# What importing the largest framework and building a small model takes.
MIN_MEMORY_BYTES = 1024**3


class DeviceInUseError(UserError):
    """Another process uses the GPU: a later try, or another node, may succeed."""


def check_place(order: Order) -> None:
    """Raise an error with everything that is missing for the cell: UserError if the container lacks it on every node.

    NodeFaultError if only this machine does: its GPU, driver or disk fails. DeviceInUseError for a busy GPU.
    """
    cell, errors, faults = order.cell, list[str](), list[str]()
    limit = read_memory_limit_bytes()
    if limit is not None and limit < MIN_MEMORY_BYTES:
        errors.append(f"memory: the container may take {limit / 1024**2:.0f} MiB, a framework alone needs a GiB")
    full_disk = explain_full_disk()
    if full_disk is not None:
        faults.append(full_disk)
    else:
        try:
            tempfile.gettempdir()
        except FileNotFoundError:
            errors.append("disk: no folder for temporary files can be written to; mount an empty volume at /tmp")
    gpus = _look_at_gpus(cell, errors, faults) if cell.device == "gpu" else ()
    missing = explain_missing_compiler(cell)
    if missing is not None:
        errors.append(f"compiler: {missing}")
    if errors:
        raise UserError(f"{cell.slug} cannot be measured here: {'; '.join([*errors, *faults])}")
    if faults:
        raise name_node_fault("; ".join(faults))
    if order.tenant == 0:  # the others find the device in use by tenant 0
        _refuse_foreign_users(cell, gpus)


MOUNTED_DRIVER = Path("/usr/local/nvidia/lib64")
"""GKE's nodes (https://cloud.google.com/kubernetes-engine/docs/how-to/gpus#cuda). Then no other node helps."""


def _look_at_gpus(cell: Cell, errors: list[str], faults: list[str]) -> tuple[GpuUse, ...]:
    """Return the present use of the cell's GPUs, and add what is wrong with the container or with the machine."""
    try:
        gpus = GpuProbe(cell.num_gpus, is_under_mps=cell.sharing == "mps").uses
    except Exception as error:  # whatever NVML says: without it there is no GPU to measure
        if "LibraryNotFound" in type(error).__name__ and MOUNTED_DRIVER.exists():
            errors.append(
                f"device: the driver is mounted in {MOUNTED_DRIVER}, where the image does not look; set "
                f"LD_LIBRARY_PATH={MOUNTED_DRIVER} in the image, or in `environment` of the profile"
            )
        else:
            faults.append(f"device: no NVIDIA GPU can be seen ({type(error).__name__}: {error})")
        return ()
    if len(gpus) >= cell.num_gpus:
        faults += _list_cuda_faults(cell)
    elif any(gpu.is_slice for gpu in gpus):  # the cluster's choice, and no fault of the machine
        mig = "a process sees one MIG slice, and no whole GPU beside it"
        errors.append(f"device: 1 GPU can be seen ({mig}), the cell needs {cell.num_gpus}")
    else:
        seen = "1 GPU" if len(gpus) == 1 else f"{len(gpus)} GPUs"
        faults.append(f"device: {seen} can be seen, the cell needs {cell.num_gpus}")
    return gpus


def _list_cuda_faults(cell: Cell) -> list[str]:
    """Return why CUDA does not start, with the cards that NVML shows: whoever mends the machine looks for these."""
    reason = explain_failed_start()
    if reason is None:
        return []
    cards = ", ".join(
        f"{gpu.name} {gpu.uuid} of {gpu.memory_total_bytes / 1024**2:.0f} MiB with driver {gpu.driver_version}"
        for gpu in read_gpus(cell.num_gpus, None, None)
    )
    return [f"device: {reason}; NVML shows {cards}"]


def _refuse_foreign_users(cell: Cell, gpus: tuple[GpuUse, ...]) -> None:
    for gpu in gpus:
        num_users = len(gpu.foreign_processes or ())
        # A server of MPS that was there before computes for the cell, and has memory of its own.
        used = 0 if cell.sharing == "mps" else gpu.memory_used_before_bytes or 0
        if num_users or used > MAX_FOREIGN_BYTES:
            raise DeviceInUseError(
                f"{cell.slug} is not measured here: GPU {gpu.uuid} is in use by others, {num_users} processes seen, "
                f"{used / 1024**2:.0f} MiB taken"
            )

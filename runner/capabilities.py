"""Decides whether a machine with given GPUs can run a cell. Imports no framework and calls no driver.

The GPUs may come from NVML, for this machine, or from a profile, for the nodes of a cluster.
"""

from dataclasses import dataclass

from bench.schema import Cell, Precision

ComputeCapability = tuple[int, int]

# CUDA C++ Programming Guide, table "Feature Support per Compute Capability": TF32 and bfloat16 came with Ampere,
# arithmetic on half-precision values with 5.3.
MIN_CAPABILITY: dict[Precision, ComputeCapability] = {"tf32": (8, 0), "bf16": (8, 0), "fp16": (5, 3)}
# Triton, which torch.compile makes its GPU kernels with, knows no older ones (torch._inductor.exc.GPUTooOldForTriton).
MIN_TRITON_CAPABILITY: ComputeCapability = (7, 0)

NO_GPU = "no NVIDIA GPU is visible on this machine"
NO_CPU_PRECISION: dict[Precision, str] = {
    "tf32": "tf32 is a mode of NVIDIA GPUs, a CPU has none; leave it to cells with device gpu",
    "fp16": "fp16 is for GPUs: hardly any CPU computes in it; take bf16 or fp32 on a CPU",
}


@dataclass(frozen=True, kw_only=True)
class GpuKind:
    """The GPUs that a machine has for a cell, all of one kind."""

    name: str
    """NVML's name of it, such as `Tesla T4`."""
    compute_capability: ComputeCapability
    """(7, 5) for a T4."""
    num_gpus: int


def explain_unsupported(cell: Cell, gpu: GpuKind | None) -> str | None:
    """Return why a machine with these GPUs (None: without any) cannot run `cell`, in one line; None where it can.

    Does not check whether the cell fits into memory.
    """
    if cell.device == "cpu":
        return NO_CPU_PRECISION.get(cell.precision)
    if gpu is None:
        return NO_GPU
    if gpu.num_gpus < cell.num_gpus:
        return f"num_gpus is {cell.num_gpus}, and {gpu.num_gpus} {gpu.name} can be used together on this machine"
    needed = MIN_CAPABILITY.get(cell.precision)
    if needed is not None and gpu.compute_capability < needed:
        return _explain_too_old(cell.precision, needed, gpu)
    if (cell.framework, cell.mode) == ("pytorch", "compiled") and gpu.compute_capability < MIN_TRITON_CAPABILITY:
        return _explain_too_old("compiled PyTorch", MIN_TRITON_CAPABILITY, gpu)
    return None


def _explain_too_old(what: str, needed: ComputeCapability, gpu: GpuKind) -> str:
    major, minor = gpu.compute_capability
    return f"{what} needs a GPU of compute capability {needed[0]}.{needed[1]} or higher; {gpu.name} has {major}.{minor}"

"""Define what a verdict on a measurement is based on."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.schema import Cell, CpuUse, Device, GpuUse, HostPeak, Phases, Roofline, Samples


@dataclass(frozen=True, kw_only=True)
class ValidityInputs:
    """Everything that a verdict is based on."""

    cell: Cell
    phases: Phases
    samples: Samples
    device_kind: Device | None
    """Where the last step's output lives; None: not known."""
    num_threads: int
    cpu_use: CpuUse | None
    """None: could not be read."""
    gpu_use: Sequence[GpuUse]
    roofline: Roofline | None
    is_under_mps: bool = False
    """Whether the GPU is used through MPS, whose server may have been there before with memory of its own."""
    is_compiled: bool | None = None
    """Whether the steps ran as programs that the framework made of them; None: not known."""
    host_peak: HostPeak | None = None
    """Of a CPU cell."""

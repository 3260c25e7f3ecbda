"""The interface of a framework, and its import by the framework's name."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import cast

from bench.measure.harness import Workload
from bench.measure.passes import DeviceActivity, ProfilerName
from bench.registry import FRAMEWORKS
from bench.schema import Cell, CompiledPrograms, PrecisionError

Settings = dict[str, str | int | bool]


class Framework:
    """A framework, imported and set up for one cell."""

    versions: dict[str, str]
    """Package name to version of what the framework brings."""
    settings: Settings
    """The framework's switches and their present values; a workload may add to them."""
    cuda_version: str | None
    """Like `cudnn_version`, known at the latest when a workload is built."""
    cudnn_version: str | None
    profiler_name: ProfilerName

    def build_workload(self, cell: Cell) -> Workload:
        """Return the cell's model with optimiser and synthetic data, resident on its device.

        Raises DeviceMissingError where only a context on the cell's device shows that it is not there.
        """
        raise NotImplementedError

    def build_product(self, cell: Cell) -> Workload:
        """Return the matrix product that calibrates the cell's device, built as fast as the framework can do that."""
        return self.build_workload(cell)

    def read_peak_memory(self) -> tuple[int | None, int | None]:
        """Return the GPU allocator's peaks (allocated, reserved) in bytes since the last reset; None on a CPU."""
        raise NotImplementedError

    def record_activities(self, run: Callable[[], None]) -> Sequence[DeviceActivity]:
        """Call `run` under the framework's profiler and return the kernels and copies on the GPUs."""
        raise NotImplementedError

    def count_programs(self) -> CompiledPrograms:
        """Return what was compiled or loaded so far; here that of a framework that keeps no compiled programs."""
        return CompiledPrograms()

    def measure_precision_error(self, cell: Cell) -> PrecisionError | None:
        """Return how far the logits of the cell's model are from float64; None: no language model, or not measured."""
        return None

    def release_memory(self) -> None:
        """Give back the GPU memory that the allocator holds unused; those of XLA and TensorFlow keep it to the end."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether `error`, which is no MemoryError, means that memory ran out."""
        raise NotImplementedError


def load_framework(cell: Cell, num_threads: int) -> Framework:
    """Import the cell's framework and set it up for its device, precision and threads, without a context on a GPU.

    A context belongs to building: all frameworks' imports and idle GPUs are measured alike. Raises
    ImportError where it is not installed, DeviceMissingError where the cell's device is seen not to be there.
    """
    module = import_module(FRAMEWORKS[cell.framework].module or f"{__package__}.{cell.framework}")
    return cast(Framework, module.load(cell, num_threads))


class DeviceMissingError(RuntimeError):
    """The device that the cell asks for is not visible to the framework."""

"""Sets PyTorch up for a cell, builds its workload, on one GPU or several, and records what its GPUs do."""

import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torchvision
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from bench.frameworks.interface import DeviceMissingError, Framework
from bench.frameworks.pytorch_workload import PyTorchWorkload, ReplicatedWorkload, set_switches
from bench.measure.profile import DeviceActivity, ProfilerName
from bench.schema import Cell

# Of the CPU's allocator, of C++'s, of the CUDA runtime (creating a context), of cuBLAS and of cuDNN.
OUT_OF_MEMORY_WORDS = (
    "DefaultCPUAllocator",
    "std::bad_alloc",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


def load(cell: Cell, num_threads: int) -> "PyTorch":
    """Set PyTorch's threads and precision and return it. DeviceMissingError where the GPUs asked for are not there."""
    if cell.device == "gpu" and torch.cuda.device_count() < cell.num_gpus:
        num_seen = torch.cuda.device_count()
        raise DeviceMissingError(f"PyTorch {torch.__version__} sees {num_seen} GPUs, the cell asks for {cell.num_gpus}")
    torch.set_num_interop_threads(num_threads)
    set_switches(cell, num_threads)
    return PyTorch(cell, num_threads)


class PyTorch(Framework):
    """PyTorch, set up for one cell."""

    profiler_name: ProfilerName = "torch.profiler"

    def __init__(self, cell: Cell, num_threads: int) -> None:
        self._on_gpu = cell.device == "gpu"
        self._num_threads = num_threads
        self._workload: Callable[[], PyTorchWorkload | None] = lambda: None
        self.versions = {"torch": torch.__version__, "torchvision": torchvision.__version__}
        self.cuda_version: str | None = torch.version.cuda
        cudnn = torch.backends.cudnn.version() if self._on_gpu else None
        self.cudnn_version = None if cudnn is None else str(cudnn)
        self.settings: dict[str, str | int | bool] = {
            "num_threads": torch.get_num_threads(),
            "num_interop_threads": torch.get_num_interop_threads(),
            "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
            "cudnn_tf32": torch.backends.cudnn.allow_tf32,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "cudnn_deterministic": torch.backends.cudnn.deterministic,
            "onednn": torch.backends.mkldnn.is_available(),
        }

    def build_workload(self, cell: Cell) -> PyTorchWorkload:
        workload_type = ReplicatedWorkload if cell.num_gpus > 1 else PyTorchWorkload
        workload = workload_type(cell, self._num_threads)
        self._workload = weakref.ref(workload)  # only the caller's reference keeps its memory
        self.settings |= workload.settings
        return workload

    def read_peak_memory(self) -> tuple[int | None, int | None]:
        """Return the CUDA allocator's peaks (allocated, reserved) in bytes since the last reset; None on a CPU.

        A replayed CUDA graph allocates nothing: its tensors' peak is that of its capture. Of several GPUs, the first's.
        """
        if not self._on_gpu:
            return None, None
        workload = self._workload()
        captured = workload.captured_peak_bytes if workload else 0
        return max(torch.cuda.max_memory_allocated(), captured), torch.cuda.max_memory_reserved()

    def record_activities(self, run: Callable[[], None]) -> list[DeviceActivity]:
        """Record all that the GPUs which this process uses do, not the host: its operations would lengthen the steps.

        Kernels of a replayed CUDA graph are recorded one by one.
        """
        # Tearing CUPTI down and starting it again crashes programs with CUDA graphs; torch.profiler itself sets both,
        # where it knows of a graph (torch/profiler/profiler.py, has_cudagraphs).
        os.environ.setdefault("TEARDOWN_CUPTI", "0")
        os.environ.setdefault("DISABLE_CUPTI_LAZY_REINIT", "1")
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            run()
        return list(select_activities(profiler.events()))

    def release_memory(self) -> None:
        if self._on_gpu:
            torch.cuda.empty_cache()

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether an allocator gave up (most raise a RuntimeError, which is recognised by its message)."""
        if isinstance(error, torch.OutOfMemoryError):
            return True
        return isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY_WORDS)


# Kineto's names for what is no kernel begin with these: "Memcpy HtoD (Pageable -> Device)", "Memset (Device)".
COPIES = ("Memcpy", "Memset")
MICROSECOND = 1_000.0  # in nanoseconds


def select_activities(events: Iterable[Any]) -> Iterator[DeviceActivity]:
    """Yield the kernels and copies among a profile's events (FunctionEvent, whose times are microseconds).

    Annotations of ranges, which Kineto shows on the GPU too, span gaps and are none.
    """
    for event in events:
        if event.device_type == DeviceType.CUDA and not event.is_user_annotation:
            yield DeviceActivity(
                device_index=event.device_index,
                kind="copy" if event.name.startswith(COPIES) else "kernel",
                start_ns=event.time_range.start * MICROSECOND,
                end_ns=event.time_range.end * MICROSECOND,
            )

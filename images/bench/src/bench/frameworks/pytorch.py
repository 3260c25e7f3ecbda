"""PyTorch: a Cell in, a Workload for the harness out."""

from collections.abc import Callable

import torch
import torchvision
from torch import nn

from bench.catalog import MODELS
from bench.frameworks.interface import DeviceMissingError
from bench.frameworks.synthetic_data import make_batch
from bench.models import build_model
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
    """Set PyTorch's threads and precision and return it. DeviceMissingError where the GPU asked for is not there."""
    if cell.device == "gpu" and not torch.cuda.is_available():
        raise DeviceMissingError(f"PyTorch {torch.__version__} sees no CUDA device")
    torch.set_num_threads(num_threads)
    torch.set_num_interop_threads(num_threads)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    # Every step has the same shapes: cuDNN may try its algorithms once, in the first step, and keep the fastest.
    torch.backends.cudnn.benchmark = True
    return PyTorch(on_gpu=cell.device == "gpu")


class PyTorch:
    """PyTorch, set up for one cell."""

    def __init__(self, *, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        self.versions = {"torch": torch.__version__, "torchvision": torchvision.__version__}
        self.cuda_version: str | None = torch.version.cuda
        cudnn = torch.backends.cudnn.version() if on_gpu else None
        self.cudnn_version = None if cudnn is None else str(cudnn)
        self.settings: dict[str, str | int | bool] = {
            "num_threads": torch.get_num_threads(),
            "num_interop_threads": torch.get_num_interop_threads(),
            "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
            "cudnn_tf32": torch.backends.cudnn.allow_tf32,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "cudnn_deterministic": torch.backends.cudnn.deterministic,
            "onednn": torch.backends.mkldnn.is_available(),
            "memory_format": "contiguous (NCHW)",
        }

    def build_workload(self, cell: Cell) -> "PyTorchWorkload":
        """Return the cell's model with Adam and a synthetic batch on its device."""
        return PyTorchWorkload(cell)

    def read_peak_memory(self) -> tuple[int | None, int | None]:
        """Return the CUDA allocator's peaks (allocated, reserved) in bytes since the last reset; None on a CPU."""
        if not self._on_gpu:
            return None, None
        return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether an allocator gave up (all but CUDA's caching one raise a plain RuntimeError: told by its words)."""
        if isinstance(error, torch.OutOfMemoryError):
            return True
        return isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY_WORDS)


class PyTorchWorkload:
    """One model with its data on one device, stepped eagerly."""

    def __init__(self, cell: Cell) -> None:
        torch.manual_seed(cell.seed)
        device = torch.device("cuda" if cell.device == "gpu" else "cpu")
        images, labels = make_batch(cell)
        self.images = torch.tensor(images, device=device)
        self.labels = torch.tensor(labels, device=device)
        self.model: nn.Module = build_model(cell, "torch").to(device)
        self._on_gpu = cell.device == "gpu"
        self.device_timer = CudaEvents() if self._on_gpu else None
        self.run_step: Callable[[], None] = self._infer
        if cell.phase == "infer":
            self.model.eval()
        else:
            self.model.train()
            self.optimizer = torch.optim.Adam(self.model.parameters(), lr=MODELS[cell.model].learning_rate)
            self._loss = nn.CrossEntropyLoss()
            self.run_step = self._train
        self.synchronize()

    def synchronize(self) -> None:
        """Wait for the GPU; on a CPU PyTorch has finished when a call returns."""
        if self._on_gpu:
            torch.cuda.synchronize()

    def reset_peak_memory(self) -> None:
        """Start the CUDA allocator's peaks anew."""
        if self._on_gpu:
            torch.cuda.reset_peak_memory_stats()

    def _train(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self._loss(self.model(self.images), self.labels).backward()
        self.optimizer.step()

    def _infer(self) -> None:
        with torch.inference_mode():
            self.model(self.images)


class CudaEvents:
    """CUDA events on the current stream."""

    def record_event(self) -> torch.cuda.Event:
        """Queue a timing event behind all work queued so far."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def read_seconds(self, start: torch.cuda.Event, end: torch.cuda.Event) -> float:
        """Return the seconds between two events that have happened (CUDA counts milliseconds, resolution 0.5 us)."""
        return float(start.elapsed_time(end)) / 1e3

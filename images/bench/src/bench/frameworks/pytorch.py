"""Builds and steps workloads in PyTorch: op by op, compiled or captured as a CUDA graph, on one device or several."""

import math
import os
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import Tensor, nn
from torch.autograd import DeviceType
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

from bench.data.feed import open_feed
from bench.frameworks.interface import DeviceMissingError, Framework, Settings
from bench.measure.harness import Workload
from bench.measure.passes import NUM_ELEMENTS, OPERATIONS_PER_BURST, DeviceActivity, ProfilerName, spin_up
from bench.models.quantized import quantize
from bench.registry import EIGHT_BITS, MODELS
from bench.schema import Cell, CompiledPrograms, Device, PrecisionError
from bench.tasks.inputs import make_inputs
from bench.tasks.precision import measure_precision_error
from bench.tasks.torch import Task, build_task, make_tensors
from bench.tasks.torch_precision import build_pair
from bench.worker.shutdown import die_with_parent

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
        self._is_compiled = cell.mode == "compiled"
        self._num_threads = num_threads
        self._workload: Callable[[], PyTorchWorkload | None] = lambda: None
        self.versions = {"torch": torch.__version__, "torchvision": torchvision.__version__}
        self.cuda_version: str | None = torch.version.cuda
        cudnn = torch.backends.cudnn.version() if self._on_gpu else None
        self.cudnn_version = None if cudnn is None else str(cudnn)
        self.settings: Settings = {
            "num_threads": torch.get_num_threads(),
            "num_interop_threads": torch.get_num_interop_threads(),
            "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
            "cudnn_tf32": torch.backends.cudnn.allow_tf32,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "cudnn_deterministic": torch.backends.cudnn.deterministic,
            "onednn": torch.backends.mkldnn.is_available(),
        }

    def build_workload(self, cell: Cell) -> "PyTorchWorkload":
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

    def count_programs(self) -> CompiledPrograms:
        if not self._is_compiled:
            return CompiledPrograms()
        found = read_counters("inductor")
        return CompiledPrograms(num_loaded=found["fxgraph_cache_hit"], num_compiled=found["fxgraph_cache_miss"])

    def measure_precision_error(self, cell: Cell) -> PrecisionError | None:
        device = torch.device("cuda" if self._on_gpu else "cpu")
        build = partial(build_pair, device, HALF_TYPES.get(cell.precision, torch.float32))
        return measure_precision_error(cell, build, math.inf)

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


def set_switches(cell: Cell, num_threads: int) -> None:
    torch.set_num_threads(num_threads)
    torch.backends.cuda.matmul.allow_tf32 = cell.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = cell.precision == "tf32"
    # Every step has the same shapes: cuDNN may try its algorithms once, in the first step, and keep the fastest.
    torch.backends.cudnn.benchmark = True


# Before a capture: cuDNN chooses its algorithms and Adam makes its state. As many as PyTorch's own examples take.
NUM_STEPS_BEFORE_CAPTURE = 3

Tensors = tuple[Tensor, ...]
HALF_TYPES = {"fp16": torch.float16} | dict.fromkeys(("bf16", *EIGHT_BITS), torch.bfloat16)
MEMORY_FORMATS = {torch.channels_last: "channels last (NHWC)", torch.contiguous_format: "contiguous (NCHW)"}


class PyTorchWorkload(Workload):
    """The networks of a cell with their optimisers and inputs on one device.

    `rank`: which of `cell.num_gpus` equal shares of the batch this one steps, each on its own GPU.
    """

    may_capture = True
    """Whether a compiled step on a GPU becomes one CUDA graph."""

    def __init__(self, cell: Cell, num_threads: int, *, rank: int = 0) -> None:
        torch.manual_seed(cell.seed)
        self._cell = cell
        self._device = torch.device("cuda", rank) if cell.device == "gpu" else torch.device("cpu")
        self._is_on_gpu = cell.device == "gpu"
        if self._is_on_gpu:
            torch.cuda.set_device(self._device)
        self._is_compiled = cell.mode == "compiled"
        self._is_graphed = self._is_compiled and self._is_on_gpu and self.may_capture
        self._half_type = HALF_TYPES.get(cell.precision)
        self._num_graphs_before = count_compiled_graphs() if self._is_compiled else 0
        self._memory_format = choose_memory_format(cell)
        self.device_timer = CudaEvents() if self._is_on_gpu else None
        self.task = self._build_task()
        size = cell.batch_size // cell.num_gpus
        own = slice(rank * size, (rank + 1) * size)
        self.inputs = tuple(self._place(torch.from_numpy(array)[own]) for array in make_inputs(cell))
        # The batches of real data of each GPU are drawn from a seed of its own.
        share = {"batch_size": size, "num_gpus": 1, "seed": (cell.seed + rank) % 2**32}
        self.feed = open_feed(cell.model_copy(update=share), max(1, num_threads // cell.num_gpus))
        self.optimizers: list[torch.optim.Optimizer] = []
        self._modules: list[nn.Module] = []
        self._scalers: list[torch.amp.GradScaler] = []
        self._is_training = cell.phase == "train"
        if self._is_training:
            self._prepare_training()
        else:
            self._prepare_inference()
        self._graph: torch.cuda.CUDAGraph | None = None
        self.captured_peak_bytes = 0
        """Peak of the allocator while a CUDA graph was captured, when its tensors were last allocated one by one."""
        self._outputs: Tensors = ()
        self.synchronize()

    @property
    def settings(self) -> Settings:
        adam = "fused Adam" if self._is_compiled else "default Adam"
        return {
            "memory_format": MEMORY_FORMATS[self._memory_format],
            "torch_compile": self._is_compiled,
            "cuda_graph": self._is_graphed,
            "optimizer": adam if self.optimizers else "none",
            "inductor_options": ", ".join(choose_inductor_options(self._cell)) or "none",
        }

    def spin_up(self) -> None:
        if self._is_on_gpu:
            keep_busy(self._device)
            torch.cuda.empty_cache()  # the workload's peaks shall be those of the workload

    def run_step(self) -> None:
        """Start one step on the resident inputs, or on the next batch of the pipeline.

        A copy waits in the stream for the step before it, which reads the same memory, and PyTorch gives pinned memory
        to no other batch before the copies from it are done: steps may be queued without synchronising.
        """
        if self.feed is not None:
            for tensor, new in zip(self.inputs, next(self.feed), strict=True):
                tensor.copy_(new, non_blocking=True)
        if not self._is_graphed:
            self._outputs = ()  # the last step's outputs need not stay in memory beside the new ones
            self._outputs = self._compute()
            return
        if self._graph is None:
            self._graph = self._capture()
        self._graph.replay()

    def synchronize(self) -> None:
        """Wait for the GPU; on a CPU PyTorch has finished when a call returns."""
        if self._is_on_gpu:
            torch.cuda.synchronize()  # without naming the device, which costs microseconds: it is the current one

    def reset_peak_memory(self) -> None:
        if self._is_on_gpu:
            torch.cuda.reset_peak_memory_stats(self._device)

    def is_compiled(self) -> bool:
        return self._is_compiled and count_compiled_graphs() > self._num_graphs_before

    def device_kind(self) -> Device:
        return "gpu" if self._outputs[0].device.type == "cuda" else "cpu"

    def _build_task(self) -> Task:
        """Build the networks in the host's memory, a language model where and in what precision it stays.

        In float32, or first on the host, 8 billion weights would need twice the memory and minutes.
        """
        if MODELS[self._cell.model].task != "text-generation":
            return build_task(self._cell)
        with make_tensors(self._device, self._half_type or torch.float32):
            return build_task(self._cell)

    def _place(self, tensor: Tensor) -> Tensor:
        keeps_type = self._cell.phase == "train" or not tensor.is_floating_point()
        dtype = tensor.dtype if keeps_type else self._half_type or tensor.dtype
        memory_format = self._memory_format if tensor.dim() == 4 else torch.contiguous_format
        return tensor.to(self._device, dtype, copy=True, memory_format=memory_format)

    def _prepare_training(self) -> None:
        spec = MODELS[self._cell.model]
        for part in self.task.parts:
            part.train().to(self._device).to(memory_format=self._memory_format)
            # Fused and capturable: one kernel for all weights, and no step counter on the host.
            adam = torch.optim.Adam(
                part.parameters(),
                lr=spec.learning_rate,
                betas=spec.betas,
                fused=True if self._is_compiled else None,
                capturable=self._is_compiled and self._is_on_gpu,
            )
            self.optimizers.append(adam)
            self._modules.append(self._wrap(part))
            if self._half_type is torch.float16:
                self._scalers.append(torch.amp.GradScaler(self._device.type))

    def _prepare_inference(self) -> None:
        for network in self.task.networks.values():
            network.eval().to(self._device).to(memory_format=self._memory_format)
            network.to(self._half_type or torch.float32)
            quantize(network, self._cell.precision)
        options = choose_inductor_options(self._cell)
        self._infer = torch.compile(self.task.infer, options=options) if self._is_compiled else self.task.infer

    def _wrap(self, part: nn.Module) -> nn.Module:
        return torch.compile(part) if self._is_compiled else part

    def _compute(self) -> Tensors:
        """Return the losses of one step of training, one for each part in its turn, or the output of inference."""
        if not self._is_training:
            with torch.inference_mode():
                return (self._infer(*self.inputs),)
        carry: Tensors = ()
        losses = []
        for index, part in enumerate(self.task.parts):
            for network in part.frozen:
                network.requires_grad_(False)
            loss, carry = self._train_part(index, (*self.inputs, *carry))
            for network in part.frozen:
                network.requires_grad_(True)
            losses.append(loss)
        return tuple(losses)

    def _train_part(self, index: int, tensors: Tensors) -> tuple[Tensor, Tensors]:
        optimizer = self.optimizers[index]
        optimizer.zero_grad(set_to_none=True)
        if self._half_type is None:
            loss, carry = self._modules[index](*tensors)
        else:
            with torch.autocast(self._device.type, self._half_type):
                loss, carry = self._modules[index](*tensors)
        if self._scalers:
            scaler = self._scalers[index]
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
        return loss.detach(), carry

    def _capture(self) -> torch.cuda.CUDAGraph:
        """Return a whole step as one graph, one launch instead of hundreds. The inputs must stay where they are."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(NUM_STEPS_BEFORE_CAPTURE):
                self._compute()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._outputs = self._compute()
        self.captured_peak_bytes = torch.cuda.max_memory_allocated()
        return graph


def count_compiled_graphs() -> int:
    """Return how many graphs torch.compile has made in this process: none where a variable has turned it off."""
    return read_counters("stats")["unique_graphs"]


def read_counters(kind: str) -> Counter[str]:
    """Return torch.compile's counters of a kind."""
    from torch._dynamo.utils import counters  # takes a second to import

    return Counter(counters[kind])


def keep_busy(device: torch.device) -> None:
    values = torch.ones(NUM_ELEMENTS, device=device)

    def run_burst() -> None:
        for _ in range(OPERATIONS_PER_BURST):
            values.sin_()
        torch.cuda.synchronize()

    spin_up(run_burst)


def choose_inductor_options(cell: Cell) -> Settings:
    """Return the options of torch.compile: none but for inference on a GPU.

    There `max_autotune` for the models whose entry asks for it, and otherwise its part `coordinate_descent_tuning`:
    seconds of compilation for a few percent of the small kernels. Decoding of one sequence gains 5.5 % by it, that of
    several loses up to 3 % (docs/models.md).
    """
    if cell.mode != "compiled" or cell.device == "cpu" or cell.phase == "train":
        return {}
    if cell.phase == "decode" and cell.batch_size > 1:
        return {}
    return {"max_autotune" if MODELS[cell.model].max_autotune else "coordinate_descent_tuning": True}


def choose_memory_format(cell: Cell) -> torch.memory_format:
    """Return how images and convolutions' weights lie in memory: as by default, unless another way is faster.

    Tensor cores want channels last. True float32 on a GPU does not use them: both ways took the same time within 1 %
    (VGG16 and ResNet18, H100, 2026-11-21), but cuDNN tried its algorithms for two minutes instead of ten seconds.
    """
    is_full_precision_on_gpu = cell.device == "gpu" and cell.precision == "fp32"
    has_images = MODELS[cell.model].task != "text-generation"
    is_last = cell.mode == "compiled" and not is_full_precision_on_gpu and has_images
    return torch.channels_last if is_last else torch.contiguous_format


class CudaEvents:
    """Times steps on a GPU with CUDA events, on the stream that was current when this object was made."""

    def __init__(self) -> None:
        self._stream = torch.cuda.current_stream()

    def make_event(self) -> torch.cuda.Event:
        """Return a timing event; recorded once, for CUDA makes it no sooner."""
        event = torch.cuda.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def record(self, event: torch.cuda.Event) -> None:
        event.record(self._stream)

    def read_seconds(self, start: torch.cuda.Event, end: torch.cuda.Event) -> float:
        """Return the seconds between two events that have happened (CUDA counts milliseconds, resolution 0.5 us)."""
        return float(start.elapsed_time(end)) / 1e3


class ReplicaWorkload(PyTorchWorkload):
    """One GPU's share of a cell; gradients are averaged over all shares as DistributedDataParallel does it.

    Compiled: torch.compile around DistributedDataParallel and the fused optimiser; no CUDA graph.
    """

    may_capture = False

    def _wrap(self, part: nn.Module) -> nn.Module:
        device_ids = [self._device.index] if self._device.type == "cuda" else None
        # Buffers stay as each process computes them: an image pool is each one's own.
        return super()._wrap(DistributedDataParallel(part, device_ids=device_ids, broadcast_buffers=False))


class ReplicatedWorkload(ReplicaWorkload):
    """The first GPU's share, in the process that is timed, which takes the processes of the others along.

    What it does, it has every other process do: the messages are names of methods. To synchronise, each answers when
    its GPU has finished: a timed step lasts as long as the slowest.
    """

    def __init__(self, cell: Cell, num_threads: int) -> None:
        rendezvous = Path(tempfile.mkdtemp(prefix="benchmatrix-")) / "rendezvous"
        self._connections = [_start_replica(cell, num_threads, rank, rendezvous) for rank in range(1, cell.num_gpus)]
        self._is_running = True  # the others are being built; the first synchronisation waits for them
        _join_group(cell, 0, rendezvous)
        super().__init__(cell, num_threads)

    def spin_up(self) -> None:
        self._send(b"spin_up")
        super().spin_up()
        self.synchronize()

    def run_step(self) -> None:
        self._send(b"run_step")
        super().run_step()

    def synchronize(self) -> None:
        is_running = self._is_running
        if is_running:
            self._send(b"synchronize")
        super().synchronize()
        if is_running:
            for connection in self._connections:
                try:
                    connection.recv_bytes()
                except EOFError:
                    raise RuntimeError("the process of another GPU has died; what it said is above") from None
            self._is_running = False

    def _send(self, message: bytes) -> None:
        for connection in self._connections:
            connection.send_bytes(message)
        self._is_running = True


def _start_replica(cell: Cell, num_threads: int, rank: int, rendezvous: Path) -> Connection:
    context = get_context("spawn")  # CUDA does not survive a fork
    ours, theirs = context.Pipe()
    arguments = (cell, num_threads, rank, rendezvous, theirs, os.getpid())
    context.Process(target=serve_replica, args=arguments, daemon=True).start()
    theirs.close()
    return ours


def serve_replica(
    cell: Cell, num_threads: int, rank: int, rendezvous: Path, connection: Connection, parent_pid: int
) -> None:
    die_with_parent(parent_pid)
    set_switches(cell, num_threads)
    _join_group(cell, rank, rendezvous)
    workload = ReplicaWorkload(cell, num_threads, rank=rank)
    while True:
        try:
            message = connection.recv_bytes()
        except EOFError:
            return
        getattr(workload, message.decode())()
        if message == b"synchronize":
            connection.send_bytes(b"done")


def _join_group(cell: Cell, rank: int, rendezvous: Path) -> None:
    if cell.device == "gpu":
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group(
        "nccl" if cell.device == "gpu" else "gloo",
        init_method=f"file://{rendezvous}",
        rank=rank,
        world_size=cell.num_gpus,
    )

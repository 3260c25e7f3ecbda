"""Builds and steps a cell's PyTorch model on one device, op by op or compiled, or captured as a CUDA graph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from bench.data.feed import BatchFeed, open_feed
from bench.measure.passes import NUM_ELEMENTS, OPERATIONS_PER_BURST, spin_up
from bench.registry import MODELS
from bench.schema import Cell
from bench.tasks.inputs import make_inputs
from bench.tasks.torch import Part, build_task


def set_switches(cell: Cell, num_threads: int) -> None:
    torch.set_num_threads(num_threads)
    torch.backends.cuda.matmul.allow_tf32 = cell.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = cell.precision == "tf32"
    # Every step has the same shapes: cuDNN may try its algorithms once, in the first step, and keep the fastest.
    torch.backends.cudnn.benchmark = True


# Before a capture: cuDNN chooses its algorithms and Adam makes its state. As many as PyTorch's own examples take.
NUM_STEPS_BEFORE_CAPTURE = 3

Tensors = tuple[Tensor, ...]


@dataclass(kw_only=True)
class TrainingStep:
    """Forward, backward and update of every part in its turn."""

    parts: Sequence[Part]
    modules: Sequence[nn.Module]
    """What is called for each part: itself, compiled, or wrapped for several GPUs."""
    optimizers: Sequence[torch.optim.Optimizer]
    device_type: str
    """Where the last step's result lives, as PyTorch says it."""
    half_type: torch.dtype | None
    """What autocast computes in; None: float32."""
    losses: Tensors = ()
    """Those of the last step."""
    scalers: "list[torch.amp.GradScaler]" = field(init=False)
    """One per part in float16, none in other precisions."""

    def __post_init__(self) -> None:
        is_scaled = self.half_type is torch.float16
        self.scalers = [torch.amp.GradScaler(self.device_type) for _ in self.parts] if is_scaled else []

    def run(self, inputs: Tensors) -> Tensor | None:
        carry: Tensors = ()
        losses = []
        for index, part in enumerate(self.parts):
            for network in part.frozen:
                network.requires_grad_(False)
            loss, carry = self._train_part(index, (*inputs, *carry))
            for network in part.frozen:
                network.requires_grad_(True)
            losses.append(loss)
        self.losses = tuple(losses)
        self.device_type = losses[0].device.type
        return None

    def _train_part(self, index: int, tensors: Tensors) -> tuple[Tensor, Tensors]:
        optimizer = self.optimizers[index]
        optimizer.zero_grad(set_to_none=True)
        if self.half_type is None:
            loss, carry = self.modules[index](*tensors)
        else:
            with torch.autocast(self.device_type, self.half_type):
                loss, carry = self.modules[index](*tensors)
        if self.scalers:
            scaler = self.scalers[index]
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
        return loss.detach(), carry


class InferenceStep:
    """One forward pass without gradients; `run` returns its output, and a reference to it keeps its memory."""

    losses: Tensors = ()
    device_type = "none yet"

    def __init__(self, infer: Callable[..., Tensor]) -> None:
        self._infer = infer

    def run(self, inputs: Tensors) -> Tensor | None:
        with torch.inference_mode():
            output = self._infer(*inputs)
        self.device_type = output.device.type
        return output


class GraphedStep:
    """A whole step as one CUDA graph: one launch instead of hundreds. The inputs must stay where they are in memory."""

    captured_peak_bytes = 0
    """Peak of the allocator during the capture, when a step's tensors were last allocated one by one."""

    def __init__(self, step: TrainingStep | InferenceStep) -> None:
        self._step = step
        self._graph: torch.cuda.CUDAGraph | None = None
        self._output: Tensor | None = None

    @property
    def losses(self) -> Tensors:
        return self._step.losses

    @property
    def device_type(self) -> str:
        return self._step.device_type

    def run(self, inputs: Tensors) -> Tensor | None:
        if self._graph is None:
            self._graph = self._capture(inputs)
        self._graph.replay()
        return self._output

    def _capture(self, inputs: Tensors) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(NUM_STEPS_BEFORE_CAPTURE):
                self._step.run(inputs)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._output = self._step.run(inputs)
        self.captured_peak_bytes = torch.cuda.max_memory_allocated()
        return graph


Step = TrainingStep | InferenceStep | GraphedStep
HALF_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
MEMORY_FORMATS = {torch.channels_last: "channels last (NHWC)", torch.contiguous_format: "contiguous (NCHW)"}


class PyTorchWorkload:
    """The networks of a cell with their optimisers and inputs on one device.

    `rank`: which of `cell.num_gpus` equal shares of the batch this one steps, each on its own GPU.
    """

    def __init__(self, cell: Cell, num_threads: int, *, rank: int = 0) -> None:
        torch.manual_seed(cell.seed)
        self._cell = cell
        self._device = torch.device("cuda", rank) if cell.device == "gpu" else torch.device("cpu")
        self._is_on_gpu = cell.device == "gpu"
        if self._is_on_gpu:
            torch.cuda.set_device(self._device)
        self._is_compiled = cell.mode == "compiled"
        self._memory_format = choose_memory_format(cell)
        self.device_timer = CudaEvents() if self._is_on_gpu else None
        self.task = build_task(cell)
        self.networks = self.task.networks
        self.inputs = self._share_out(tuple(torch.from_numpy(array) for array in make_inputs(cell)), rank)
        self.feed = open_share(cell, num_threads, rank)
        self.optimizers: list[torch.optim.Optimizer] = []
        self._step = self._prepare_training() if cell.phase == "train" else self._prepare_inference()
        self.synchronize()

    @property
    def settings(self) -> dict[str, str | int | bool]:
        is_graphed = isinstance(self._step, GraphedStep)
        adam = f"{'fused' if self._is_compiled else 'default'} Adam" if self.optimizers else "none"
        return {
            "memory_format": MEMORY_FORMATS[self._memory_format],
            "torch_compile": self._is_compiled,
            "cuda_graph": is_graphed,
            "optimizer": adam,
            "inductor_options": ", ".join(choose_inductor_options(self._cell)) or "none",
        }

    @property
    def losses(self) -> tuple[Tensor, ...]:
        return self._step.losses

    @property
    def captured_peak_bytes(self) -> int:
        return self._step.captured_peak_bytes if isinstance(self._step, GraphedStep) else 0

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
        self._step.run(self.inputs)

    def synchronize(self) -> None:
        """Wait for the GPU; on a CPU PyTorch has finished when a call returns."""
        if self._is_on_gpu:
            torch.cuda.synchronize()  # without naming the device, which costs microseconds: it is the current one

    def reset_peak_memory(self) -> None:
        if self._is_on_gpu:
            torch.cuda.reset_peak_memory_stats(self._device)

    def device_kind(self) -> str:
        return "gpu" if self._step.device_type == "cuda" else self._step.device_type

    def _share_out(self, inputs: tuple[Tensor, ...], rank: int) -> tuple[Tensor, ...]:
        size = self._cell.batch_size // self._cell.num_gpus
        return tuple(self._place(tensor[rank * size : (rank + 1) * size]) for tensor in inputs)

    def _place(self, tensor: Tensor) -> Tensor:
        keeps_type = self._cell.phase == "train" or not tensor.is_floating_point()
        dtype = tensor.dtype if keeps_type else HALF_TYPES.get(self._cell.precision, tensor.dtype)
        memory_format = self._memory_format if tensor.dim() == 4 else torch.contiguous_format
        return tensor.to(self._device, dtype, copy=True, memory_format=memory_format)

    def _prepare_training(self) -> Step:
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
        step = TrainingStep(
            parts=self.task.parts,
            modules=[self._wrap(part) for part in self.task.parts],
            optimizers=self.optimizers,
            device_type=self._device.type,
            half_type=HALF_TYPES.get(self._cell.precision),
        )
        return self._capture(step)

    def _prepare_inference(self) -> Step:
        for network in self.networks.values():
            network.eval().to(self._device).to(memory_format=self._memory_format)
            network.to(HALF_TYPES.get(self._cell.precision, torch.float32))
        options = choose_inductor_options(self._cell)
        infer = torch.compile(self.task.infer, options=options) if self._is_compiled else self.task.infer
        return self._capture(InferenceStep(infer))

    def _wrap(self, part: Part) -> nn.Module:
        if not self._is_compiled:
            return part
        compiled: nn.Module = torch.compile(part)
        return compiled

    def _capture(self, step: TrainingStep | InferenceStep) -> Step:
        return GraphedStep(step) if self._is_compiled and self._is_on_gpu else step


def open_share(cell: Cell, num_threads: int, rank: int) -> BatchFeed | None:
    """Return one GPU's batches of the cell's real data, drawn from its own seed; None where the data are synthetic."""
    share = {"batch_size": cell.batch_size // cell.num_gpus, "num_gpus": 1, "seed": (cell.seed + rank) % 2**32}
    return open_feed(cell.model_copy(update=share), max(1, num_threads // cell.num_gpus))


def keep_busy(device: torch.device) -> None:
    values = torch.ones(NUM_ELEMENTS, device=device)

    def run_burst() -> None:
        for _ in range(OPERATIONS_PER_BURST):
            values.sin_()
        torch.cuda.synchronize()

    spin_up(run_burst)


def choose_inductor_options(cell: Cell) -> dict[str, str | int | bool]:
    """Return the options of torch.compile: none but for inference on a GPU.

    There `max_autotune` for the models whose entry asks for it, and otherwise its part `coordinate_descent_tuning`:
    seconds of compilation for a few percent of the small kernels.
    """
    if cell.mode != "compiled" or cell.device == "cpu" or cell.phase == "train":
        return {}
    return {"max_autotune" if MODELS[cell.model].max_autotune else "coordinate_descent_tuning": True}


def choose_memory_format(cell: Cell) -> torch.memory_format:
    """Return how images and convolutions' weights lie in memory: as by default, unless another way is faster.

    Tensor cores want channels last. True float32 on a GPU does not use them: both ways took the same time within 1 %
    (VGG16 and ResNet18, H100, 2026-11-21), but cuDNN tried its algorithms for two minutes instead of ten seconds.
    """
    is_full_precision_on_gpu = cell.device == "gpu" and cell.precision == "fp32"
    return torch.channels_last if cell.mode == "compiled" and not is_full_precision_on_gpu else torch.contiguous_format


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

"""Builds and steps a cell's PyTorch model on one device, op by op or compiled."""

import torch
from torch import Tensor, nn

from bench.data.feed import BatchFeed
from bench.frameworks.pytorch_steps import GraphedStep, InferenceStep, Step, TrainingStep
from bench.measure.spin_up import NUM_ELEMENTS, OPERATIONS_PER_BURST, spin_up
from bench.registry import MODELS
from bench.schema import Cell
from bench.tasks.inputs import make_inputs
from bench.tasks.torch import Part, build_task

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
        """What was decided for this cell, for the record."""
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
        """The losses of the last training step, one per part; scalars on the device."""
        return self._step.losses

    @property
    def captured_peak_bytes(self) -> int:
        """Peak of the allocator while the CUDA graph was captured; 0 without one."""
        return self._step.captured_peak_bytes if isinstance(self._step, GraphedStep) else 0

    def spin_up(self) -> None:
        """Keep the GPU busy until its clock is up."""
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
        """Start the CUDA allocator's peaks anew."""
        if self._is_on_gpu:
            torch.cuda.reset_peak_memory_stats(self._device)

    def device_kind(self) -> str:
        """Return where the last step's result lives: `cpu` or `gpu`."""
        return "gpu" if self._step.device_type == "cuda" else self._step.device_type

    def _share_out(self, inputs: tuple[Tensor, ...], rank: int) -> tuple[Tensor, ...]:
        """Return this rank's share of the batch on the device, in the layout and type that the networks compute in."""
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
        """Return what a training step calls for a part."""
        if not self._is_compiled:
            return part
        compiled: nn.Module = torch.compile(part)
        return compiled

    def _capture(self, step: TrainingStep | InferenceStep) -> Step:
        return GraphedStep(step) if self._is_compiled and self._is_on_gpu else step


def open_share(cell: Cell, num_threads: int, rank: int) -> BatchFeed | None:
    """Return one GPU's batches of the cell's real data, drawn from its own seed; None where the data are synthetic."""
    if cell.data_dir is None:
        return None
    from bench.data.pytorch import open_pipeline

    share = {"batch_size": cell.batch_size // cell.num_gpus, "num_gpus": 1, "seed": (cell.seed + rank) % 2**32}
    return open_pipeline(cell.model_copy(update=share), max(1, num_threads // cell.num_gpus))


def keep_busy(device: torch.device) -> None:
    """Spin up one GPU with operations that leave no workspace of a library behind."""
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
        """Queue an event behind all work queued so far."""
        event.record(self._stream)

    def read_seconds(self, start: torch.cuda.Event, end: torch.cuda.Event) -> float:
        """Return the seconds between two events that have happened (CUDA counts milliseconds, resolution 0.5 us)."""
        return float(start.elapsed_time(end)) / 1e3

"""Training and inference steps in PyTorch, made of a task's parts; one can be captured as a CUDA graph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from bench.tasks.torch import Part

# Before a capture: cuDNN chooses its algorithms and Adam makes its state. As many as PyTorch's own examples take.
NUM_STEPS_BEFORE_CAPTURE = 3

Tensors = tuple[Tensor, ...]


class Step(Protocol):
    """One step of a workload."""

    @property
    def losses(self) -> Tensors:
        """The losses of the last step; none in inference."""

    @property
    def device_type(self) -> str:
        """Where the last step's result lives, as PyTorch says it."""

    def run(self, inputs: Tensors) -> Tensor | None:
        """Start a step; return its output where it has one. A reference to it keeps its memory."""


@dataclass(kw_only=True)
class TrainingStep:
    """Forward, backward and update of every part in its turn."""

    parts: Sequence[Part]
    modules: Sequence[nn.Module]
    """What is called for each part: itself, compiled, or wrapped for several GPUs."""
    optimizers: Sequence[torch.optim.Optimizer]
    device_type: str
    half_type: torch.dtype | None
    """What autocast computes in; None: float32."""
    losses: Tensors = ()
    scalers: "list[torch.amp.GradScaler]" = field(init=False)
    """One per part in float16, none in other precisions."""

    def __post_init__(self) -> None:
        is_scaled = self.half_type is torch.float16
        self.scalers = [torch.amp.GradScaler(self.device_type) for _ in self.parts] if is_scaled else []

    def run(self, inputs: Tensors) -> Tensor | None:
        """Run every part; a part's frozen networks get no gradients in it."""
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
    """One forward pass without gradients."""

    losses: Tensors = ()
    device_type = "none yet"

    def __init__(self, infer: Callable[..., Tensor]) -> None:
        self._infer = infer

    def run(self, inputs: Tensors) -> Tensor | None:
        """Run the forward pass."""
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
        """The losses of the last step: the same memory in every step."""
        return self._step.losses

    @property
    def device_type(self) -> str:
        """Where the captured step's result lives."""
        return self._step.device_type

    def run(self, inputs: Tensors) -> Tensor | None:
        """Replay the graph; the first time, compile, warm up and capture it. The output is always the same memory."""
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

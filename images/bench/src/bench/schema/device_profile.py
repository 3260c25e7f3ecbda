"""What the framework's profiler saw the GPUs do, in a pass of its own after the timed window."""

from typing import Annotated, Literal

from pydantic import Field

from bench.schema.document import Amount, Document, Number, Seconds, StepSeconds


class GpuActivity(Document):
    """What one GPU did in the profiled steps."""

    device_index: Number
    """Which of the GPUs that the measuring process sees, from 0."""
    num_kernels: Number
    num_copies: Number
    """Copies and fills of memory (memcpy, memset)."""
    busy_seconds: Seconds
    """Length of the union of the kernels' and copies' intervals: what ran at once, on several streams, counts once, and
    the gaps between them do not count."""


class DeviceProfile(Document):
    """How long the GPUs had work in the profiled steps. The profiler slows the host down, hardly the kernels."""

    source: Literal["torch.profiler", "tf.profiler", "jax.profiler"]
    step_seconds: Annotated[tuple[StepSeconds, ...], Field(min_length=1)]
    """Wall time of each profiled step, the profiler's cost included. What the profiler loads on first use may be in the
    first one."""
    gpus: Annotated[tuple[GpuActivity, ...], Field(min_length=1)]
    """Those that the profiler of the measuring process sees: all of the cell's in TensorFlow and JAX; in PyTorch, which
    has a process for each GPU, the first."""
    kernel_seconds_per_step: Seconds
    """`busy_seconds` of the busiest GPU over the number of profiled steps."""
    kernel_busy_share: Amount
    """`kernel_seconds_per_step` over the median step of the timed window, which no profiler slowed down: the part of a
    step in which the GPU had work. Above 1 where the kernels of the pass ran at lower clocks than those of the window,
    or the profiler slowed them down."""
    profiled_busy_share: Amount
    """`kernel_seconds_per_step` over the median of `step_seconds` but the first."""

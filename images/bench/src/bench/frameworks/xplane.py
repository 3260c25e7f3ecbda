"""Finds kernels and copies in the traces (XSpace, `*.xplane.pb`) that XLA's profiler writes for TensorFlow and JAX.

Written by xla/backends/profiler/gpu/cupti_collector.cc: one plane for each GPU, one line for each of its streams.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.measure.profile import DeviceActivity

GPU_PLANE = re.compile(r"/device:GPU:(\d+)")
# "Stream #14(Compute)". Other lines of a GPU's plane are derived from these ("XLA Ops", "Steps"), counters or CUPTI's
# own time; their events span gaps.
STREAM_LINE = re.compile(r"Stream #\d+")
# The statistics that say what an event on a stream is. Without one of them it is none of the device's work: memory
# taken and given back.
KINDS: dict[str, Literal["kernel", "copy"]] = {
    "kernel_details": "kernel",
    "memcpy_details": "copy",
    "memset_details": "copy",
}
GRAPH = "cuda_graph_exec_id"


@dataclass(frozen=True, kw_only=True)
class TraceEvent:
    """An event of a trace, with the names of its plane, its line and its statistics."""

    plane: str
    line: str
    statistics: frozenset[str]
    start_ns: float
    duration_ns: float


def prepare_tracing() -> None:
    """Set what the tracer reads when it starts: kernels of several streams run at the same time, as without it.

    By default it takes CUPTI's older way, which lets one kernel run at a time.
    """
    os.environ["TF_GPU_CUPTI_FORCE_CONCURRENT_KERNEL"] = "1"


def find_trace(folder: str) -> Path:
    traces = list(Path(folder).rglob("*.xplane.pb"))
    if len(traces) != 1:
        raise RuntimeError(f"the profiler wrote {len(traces)} traces, expected one")
    return traces[0]


def select_activities(events: Iterable[TraceEvent]) -> Iterator[DeviceActivity]:
    """Yield the kernels and copies on the streams of GPUs.

    Raise RuntimeError for a CUDA graph that was recorded as a whole: the gaps inside it cannot be seen.
    """
    for event in events:
        gpu = GPU_PLANE.fullmatch(event.plane)
        if gpu is None or not STREAM_LINE.match(event.line):
            continue
        kind = next((kind for name, kind in KINDS.items() if name in event.statistics), None)
        if kind is not None:
            yield DeviceActivity(
                device_index=int(gpu[1]), kind=kind, start_ns=event.start_ns, end_ns=event.start_ns + event.duration_ns
            )
        elif GRAPH in event.statistics:
            raise RuntimeError("the profiler recorded a CUDA graph as a whole, not its kernels")

"""Finds kernels and copies in the traces (XSpace, `*.xplane.pb`) that XLA's profiler writes for TensorFlow and JAX.

Written by xla/backends/profiler/gpu/cupti_collector.cc: one plane for each GPU, one line for each of its streams.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

from bench.measure.passes import DeviceActivity

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
TraceEvent = tuple[str, str, frozenset[str], float, float]
"""Names of its plane, its line and its statistics, start and duration in nanoseconds."""


def record_activities(
    run: Callable[[], None],
    trace: Callable[[str], AbstractContextManager[Any]],
    list_events: Callable[[bytes], Iterable[TraceEvent]],
) -> list[DeviceActivity]:
    """Call `run` while `trace` writes what the GPUs do below a folder; return their kernels and copies."""
    # Kernels of several streams run at the same time, as without the tracer. By default it takes CUPTI's older way,
    # which lets one kernel run at a time.
    os.environ["TF_GPU_CUPTI_FORCE_CONCURRENT_KERNEL"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        with trace(folder):
            run()
        (file,) = Path(folder).rglob("*.xplane.pb")
        return list(select_activities(list_events(file.read_bytes())))


def select_activities(events: Iterable[TraceEvent]) -> Iterator[DeviceActivity]:
    """Yield the kernels and copies on the streams of GPUs.

    Raise RuntimeError for a CUDA graph that was recorded as a whole: the gaps inside it cannot be seen.
    """
    for plane, line, statistics, start_ns, duration_ns in events:
        gpu = GPU_PLANE.fullmatch(plane)
        if gpu is None or not STREAM_LINE.match(line):
            continue
        kind = next((kind for name, kind in KINDS.items() if name in statistics), None)
        if kind is not None:
            yield DeviceActivity(device_index=int(gpu[1]), kind=kind, start_ns=start_ns, end_ns=start_ns + duration_ns)
        elif GRAPH in statistics:
            raise RuntimeError("the profiler recorded a CUDA graph as a whole, not its kernels")

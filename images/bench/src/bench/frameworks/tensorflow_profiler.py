"""Records what the GPUs do with TensorFlow's profiler."""

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

from bench.frameworks.xplane import TraceEvent, find_trace, prepare_tracing, select_activities
from bench.measure.profile import DeviceActivity

PICOSECONDS = 1_000  # in a nanosecond


def record_activities(run: Callable[[], None]) -> list[DeviceActivity]:
    """Call `run` and return the kernels and copies on all GPUs. The host is not traced.

    Raise RuntimeError where the trace has none, with what the tracer says of the reason.
    """
    with tempfile.TemporaryDirectory() as folder:
        trace_run(run, folder)
        trace = parse_trace(find_trace(folder).read_bytes())
    activities = list(select_activities(list_events(trace)))
    if not activities and trace.errors:
        raise RuntimeError("; ".join(trace.errors))
    return activities


def trace_run(run: Callable[[], None], folder: str, *, host_tracer_level: int = 0) -> None:
    """Call `run` and write its trace below `folder`. `host_tracer_level`: 0 traces nothing on the host."""
    prepare_tracing()
    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=host_tracer_level, python_tracer_level=0, device_tracer_level=1
    )
    tf.profiler.experimental.start(folder, options)
    try:
        run()
    finally:
        tf.profiler.experimental.stop()


def parse_trace(data: bytes) -> Any:
    """Return the trace (XSpace) that a file holds."""
    return XSpace.FromString(data)


def list_events(trace: Any) -> Iterator[TraceEvent]:
    """Yield the events of a trace (XSpace)."""
    for plane in trace.planes:
        names = plane.stat_metadata
        for line in plane.lines:
            for event in line.events:
                yield TraceEvent(
                    plane=plane.name,
                    line=line.name,
                    statistics=frozenset(names[stat.metadata_id].name for stat in event.stats),
                    start_ns=line.timestamp_ns + event.offset_ps / PICOSECONDS,
                    duration_ns=event.duration_ps / PICOSECONDS,
                )

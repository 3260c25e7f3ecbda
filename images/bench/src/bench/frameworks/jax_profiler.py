"""Records what the GPUs do with JAX's profiler."""

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.profiler import ProfileData

from bench.frameworks.xplane import TraceEvent, find_trace, prepare_tracing, select_activities
from bench.measure.profile import DeviceActivity


def record_activities(run: Callable[[], None]) -> list[DeviceActivity]:
    """Call `run` and return the kernels and copies on all GPUs. The host is not traced."""
    with tempfile.TemporaryDirectory() as folder:
        trace_run(run, folder)
        trace = find_trace(folder).read_bytes()
    return list(select_activities(list_events(parse_trace(trace))))


def trace_run(run: Callable[[], None], folder: str, *, host_tracer_level: int = 0) -> None:
    """Call `run` and write its trace below `folder`. `host_tracer_level`: 0 traces nothing on the host."""
    prepare_tracing()
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = host_tracer_level
    options.python_tracer_level = 0
    options.enable_hlo_proto = False  # the programs themselves, megabytes
    with jax.profiler.trace(folder, profiler_options=options):
        run()


def parse_trace(data: bytes) -> Any:
    """Return the trace (ProfileData) that a file holds."""
    return ProfileData.from_serialized_xspace(data)


def list_events(trace: Any) -> Iterator[TraceEvent]:
    """Yield the events of a trace (ProfileData)."""
    for plane in trace.planes:
        for line in plane.lines:
            for event in line.events:
                yield TraceEvent(
                    plane=plane.name,
                    line=line.name,
                    statistics=frozenset(name for name, _ in event.stats),
                    start_ns=event.start_ns,
                    duration_ns=event.duration_ns,
                )

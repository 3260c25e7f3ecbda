"""A trace of GPUs as XLA's tracer writes it, and how TensorFlow and JAX have to read it: without a GPU."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import astuple
from typing import Any

from conformance import catch

from bench.frameworks.xplane import TraceEvent, record_activities, select_activities

# Two GPUs. On the first one, in microseconds: kernels from 10 to 20 and, on another stream, from 15 to 30, a copy from
# 40 to 42, a fill from 50 to 51; and what does not count: memory taken, a derived line, CUPTI's own time.
STATISTICS = """
  stat_metadata { key: 1 value { id: 1 name: "kernel_details" } }
  stat_metadata { key: 2 value { id: 2 name: "memcpy_details" } }
  stat_metadata { key: 3 value { id: 3 name: "memset_details" } }
  stat_metadata { key: 4 value { id: 4 name: "memalloc_details" } }
  stat_metadata { key: 5 value { id: 5 name: "correlation_id" } }
  stat_metadata { key: 6 value { id: 6 name: "cuda_graph_exec_id" } }
  event_metadata { key: 1 value { id: 1 name: "an event" } }
"""


def write_line(name: str, *events: tuple[int, int, int]) -> str:
    """Return a line of events (start in us, end in us, statistic), which begins a millisecond after the trace."""
    texts = (
        f"events {{ metadata_id: 1 offset_ps: {start}000000 duration_ps: {end - start}000000 "
        f"stats {{ metadata_id: 5 uint64_value: 7 }} stats {{ metadata_id: {statistic} uint64_value: 1 }} }}"
        for start, end, statistic in events
    )
    return f'lines {{ name: "{name}" timestamp_ns: 1000000 {" ".join(texts)} }}'


def write_plane(name: str, *lines: str) -> str:
    """Return a plane with these lines."""
    return f'planes {{ name: "{name}" {" ".join(lines)} {STATISTICS} }}'


TRACE = "\n".join(
    (
        write_plane("/host:CPU", write_line("python", (0, 900, 1))),
        write_plane(
            "/device:GPU:0",
            write_line("Stream #13(Compute,MemcpyH2D)", (10, 20, 1), (40, 42, 2), (60, 61, 4)),
            write_line("Stream #14(Compute,Memset)", (15, 30, 1), (50, 51, 3)),
            write_line("XLA Ops", (10, 200, 1)),
            write_line("CUPTI overhead", (70, 80, 5)),
        ),
        write_plane("/device:GPU:1", write_line("Stream #20(Compute)", (0, 5, 1))),
    )
)
GRAPH_TRACE = write_plane("/device:GPU:0", write_line("Stream #13(CudaGraph)", (10, 20, 6)))


ORIGIN = 1_000_000.0  # nanoseconds
ACTIVITIES = [
    (0, "kernel", ORIGIN + 10_000, ORIGIN + 20_000),
    (0, "copy", ORIGIN + 40_000, ORIGIN + 42_000),
    (0, "kernel", ORIGIN + 15_000, ORIGIN + 30_000),
    (0, "copy", ORIGIN + 50_000, ORIGIN + 51_000),
    (1, "kernel", ORIGIN, ORIGIN + 5_000),
]


def examine(
    module: Any,
    serialize: Callable[[str], bytes],
    trace_host: Callable[[str], AbstractContextManager[Any]],
    work: Callable[[], None],
) -> None:
    """Check what is found in the traces written here, and in real ones of this machine, which has no GPU.

    `serialize`: a trace written as text to the file of it. `trace_host`: as the module's `trace`, but of the host.
    `work`: does something on the CPU.
    """
    real: list[TraceEvent] = []

    def note(data: bytes) -> list[TraceEvent]:
        real.extend(module.list_events(data))
        return real

    record_activities(work, trace_host, note)
    assert "/host:CPU" in {plane for plane, *_ in real}
    assert 0 < max(duration_ns for *_, duration_ns in real) < 60e9
    assert record_activities(work, module.trace, module.list_events) == []
    written = select_activities(module.list_events(serialize(TRACE)))
    assert [astuple(activity) for activity in written] == ACTIVITIES
    error = catch(lambda: list(select_activities(module.list_events(serialize(GRAPH_TRACE)))))
    assert str(error) == "the profiler recorded a CUDA graph as a whole, not its kernels"

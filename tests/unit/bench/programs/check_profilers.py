"""Print what a framework's profiler finds, as one JSON object on the last line of stdout. Argument: the framework.

No GPU is needed: a trace of the CPU is real, that of GPUs is written here as XLA's tracer writes it.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bench.frameworks.xplane import find_trace, select_activities

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


def work_in_jax() -> None:
    """Do something on the CPU."""
    import jax

    jax.block_until_ready(jax.numpy.ones((64, 64)) @ jax.numpy.ones((64, 64)))


def work_in_tensorflow() -> None:
    """Do something on the CPU."""
    import tensorflow as tf

    tf.matmul(tf.ones((64, 64)), tf.ones((64, 64))).numpy()


def serialize_for_jax(text: str) -> bytes:
    """Return a trace written as text as the file of it."""
    from jax.profiler import ProfileData

    data: bytes = ProfileData.text_proto_to_serialized_xspace(text)
    return data


def serialize_for_tensorflow(text: str) -> bytes:
    """Return a trace written as text as the file of it."""
    from google.protobuf import text_format  # type: ignore[import-untyped]
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    data: bytes = text_format.Parse(text, XSpace()).SerializeToString()
    return data


def check_traces(module: Any, serialize: Callable[[str], bytes], work: Callable[[], None]) -> dict[str, Any]:
    """Say what is found in the traces written here and in real ones of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        module.trace_run(work, folder, host_tracer_level=2)
        real = list(module.list_events(module.parse_trace(find_trace(folder).read_bytes())))
    written = select_activities(module.list_events(module.parse_trace(serialize(TRACE))))
    try:
        graph = str(list(select_activities(module.list_events(module.parse_trace(serialize(GRAPH_TRACE))))))
    except RuntimeError as error:
        graph = str(error)
    return {
        "activities": [list(asdict(activity).values()) for activity in written],
        "graph": graph,
        "real_planes": sorted({event.plane for event in real}),
        "real_seconds": max(event.duration_ns for event in real) / 1e9,
        "real_activities": len(module.record_activities(work)),
    }


def check_pytorch() -> dict[str, Any]:
    """Say which of a profile's events count."""
    from torch.autograd import DeviceType
    from torch.autograd.profiler_util import FunctionEvent

    from bench.frameworks.pytorch import select_activities

    def make_event(name: str, device: DeviceType, start: float, end: float, **fields: Any) -> FunctionEvent:
        return FunctionEvent(0, name, 0, start, end, device_type=device, device_index=1, **fields)

    events = (
        make_event("cudaLaunchKernel", DeviceType.CPU, 0, 5),
        make_event("void implicit_convolve_sgemm", DeviceType.CUDA, 10, 20),
        make_event("Memcpy HtoD (Pageable -> Device)", DeviceType.CUDA, 40, 42),
        make_event("Memset (Device)", DeviceType.CUDA, 50, 51),
        make_event("Optimizer.step#Adam.step", DeviceType.CUDA, 0, 90, is_user_annotation=True),
    )
    return {"activities": [list(asdict(activity).values()) for activity in select_activities(events)]}


def main() -> None:
    """Print all answers."""
    if sys.argv[1] == "pytorch":
        answers = check_pytorch()
    elif sys.argv[1] == "jax":
        from bench.frameworks import jax

        answers = check_traces(jax, serialize_for_jax, work_in_jax)
    else:
        from bench.frameworks import tensorflow

        answers = check_traces(tensorflow, serialize_for_tensorflow, work_in_tensorflow)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()

"""Records what the GPU does with torch.profiler."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from bench.measure.profile import DeviceActivity

# Kineto's names for what is no kernel begin with these: "Memcpy HtoD (Pageable -> Device)", "Memset (Device)".
COPIES = ("Memcpy", "Memset")
MICROSECOND = 1_000.0  # in nanoseconds


def record_activities(run: Callable[[], None]) -> list[DeviceActivity]:
    """Call `run` and return the kernels and copies on the GPUs that this process uses.

    The host is not traced: recording its operations would only lengthen the steps. Kernels of a replayed CUDA graph are
    recorded one by one.
    """
    # Tearing CUPTI down and starting it again crashes programs with CUDA graphs; torch.profiler itself sets both, where
    # it knows of a graph (torch/profiler/profiler.py, has_cudagraphs).
    os.environ.setdefault("TEARDOWN_CUPTI", "0")
    os.environ.setdefault("DISABLE_CUPTI_LAZY_REINIT", "1")
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run()
    return list(select_activities(profiler.events()))


def select_activities(events: Iterable[Any]) -> Iterator[DeviceActivity]:
    """Yield the kernels and copies among a profile's events (FunctionEvent, whose times are microseconds).

    Annotations of ranges, which Kineto shows on the GPU too, span gaps and are none.
    """
    for event in events:
        if event.device_type == DeviceType.CUDA and not event.is_user_annotation:
            yield DeviceActivity(
                device_index=event.device_index,
                kind="copy" if event.name.startswith(COPIES) else "kernel",
                start_ns=event.time_range.start * MICROSECOND,
                end_ns=event.time_range.end * MICROSECOND,
            )

"""Results whose devices, passes or counters contradict them, for tests of `bench.contradictions`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.schema import DeviceProfile, GpuActivity, GpuWindow, PipelinedWindow, Result
from factories import make_cell, make_cpu_use, make_environment, make_gpu, make_gpu_use, make_memory, make_result
from host_figures import make_host_figures

Cases = Mapping[str, tuple[Callable[[], Result], str]]
"""What makes a result that contradicts itself, and a part of the line that says so, by what it is."""
GPU = make_cell(device="gpu")
HOST = make_host_figures(theoretical=None, before=3e12, after=3e12)
INSTANT = GpuWindow(
    seconds=1e-6,
    sm_clock_before_mhz=None,
    sm_clock_after_mhz=None,
    sm_clock_mhz=(),
    energy_joules=None,
    held_seconds={},
)


def change(result: Result, **changes: Any) -> Result:
    """Return the result with other fields, as whoever writes a document by hand can have them."""
    return Result.model_validate(result.model_dump() | changes)


def profile(kernel_seconds: float, steps: Sequence[float], **changes: Any) -> Result:
    """Return a GPU's result with steps of 0.1 s whose kernels take so long by a profiler."""
    busy = kernel_seconds * len(steps)
    fields: dict[str, Any] = {
        "source": "torch.profiler", "step_seconds": tuple(steps), "kernel_seconds_per_step": kernel_seconds,
        "gpus": (GpuActivity(device_index=0, num_kernels=5, num_copies=0, busy_seconds=busy),),
        "kernel_busy_share": kernel_seconds / 0.1, "profiled_busy_share": kernel_seconds / steps[0],
    }  # fmt: skip
    pipelined = changes.pop("pipelined", None)
    return make_result(GPU, device_profile=DeviceProfile(**(fields | changes)), pipelined=pipelined)


DEVICE_CASES: Mapping[str, Cases] = {
    "devices": {
        "as many GPUs as nobody asked for": (
            lambda: change(make_result(GPU), environment=make_environment(gpus=(make_gpu(),) * 64)),
            "its environment has 64 GPUs, its cell 1",
        ),
        "a GPU cell without a GPU": (
            lambda: change(make_result(GPU), environment=make_environment()),
            "its environment has 0 GPUs, its cell 1",
        ),
        "TF32 in float32": (
            lambda: change(
                make_result(GPU), environment=make_environment(gpus=(make_gpu(),), settings={"matmul_tf32": True})
            ),
            "its cell is in fp32, and its setting matmul_tf32 was on",
        ),
    },
    "passes": {
        "kernels that are busy for longer than a step": (
            lambda: profile(0.3, [0.31] * 5),
            "kernels took 0.3 s a step, and a step of it takes 0.1 s",
        ),
        "kernels that are busy for longer than their steps": (
            lambda: profile(0.1, [0.01] * 5),
            "kernels took 0.5 s of profiled steps of 0.05 s in sum",
        ),
        "kernels that were not profiled": (
            lambda: profile(0.09, [0.1] * 5, kernel_seconds_per_step=0.01, kernel_busy_share=0.1),
            "kernels took 0.01 s a step, by those of 5 profiled steps 0.09 s",
        ),
        "a share of other kernels": (
            lambda: profile(0.09, [0.1] * 5, kernel_busy_share=0.001),
            "kernels took 0.9 of a step, by kernel_busy_share 0.001",
        ),
        "pipelined steps faster than their kernels": (
            lambda: profile(0.09, [0.1] * 5, pipelined=PipelinedWindow(num_steps=13, seconds=0.52)),
            "kernels took 0.09 s a step, and a step of it takes 0.04 s",
        ),
        "a pipelined window far shorter than was asked for": (
            lambda: make_result(GPU, pipelined=PipelinedWindow(num_steps=1, seconds=0.02)),
            "its pipelined window took 0.02 s, its cell asks for 1 s",
        ),
    },
    "counters": {
        "tensors that no T4 can hold": (
            lambda: make_result(GPU, memory=make_memory(peak_memory_allocated_bytes=10**15)),
            "its process used 1,000,000,000,000,000 bytes of a GPU that has 16,106,127,360",
        ),
        "more energy than a GPU may take": (
            lambda: make_result(GPU, gpu_use=(make_gpu_use(energy_joules=1e9),)),
            "took 1e+09 J in the sampling pass of 3 s, and may take 70 W",
        ),
        "less energy than was seen at any moment": (
            lambda: make_result(GPU, gpu_use=(make_gpu_use(energy_joules=0.018),)),
            "took 0.018 J in the sampling pass of 3 s, and never less than 60 W",
        ),
        "a GPU watched for an instant": (
            lambda: make_result(GPU, gpu_use=(make_gpu_use(window=INSTANT),)),
            "was watched for 1e-06 s of a window of 0.3 s",
        ),
        "more cores than there are": (
            lambda: make_result(cpu_use=make_cpu_use(own_cores=1000.0)),
            "its process kept 1000.0 of 2 cores busy",
        ),
        "a CPU with another peak than its figures": (
            lambda: change(make_result(host_peak=HOST), roofline=make_result().roofline),
            "the largest of host_peak 3e+12",
        ),
        "a calculated peak of other factors": (
            lambda: make_result(host_peak=make_host_figures(theoretical=3e14, clock_hertz=2.6e9)),
            "host_peak.theoretical_flops_per_second is 3e+14, its factors 1.664e+11",
        ),
    },
}  # fmt: skip

"""Make device profiles for tests, which name only the fields that they care about."""

from typing import Any

from bench.schema import DeviceProfile, GpuActivity


def make_gpu_activity(**overrides: Any) -> GpuActivity:
    """Return the first GPU, busy for 0.1 s with 500 kernels and 10 copies."""
    fields: dict[str, Any] = {"device_index": 0, "num_kernels": 500, "num_copies": 10, "busy_seconds": 0.1}
    return GpuActivity(**(fields | overrides))


def make_device_profile(**overrides: Any) -> DeviceProfile:
    """Return five steps in which a GPU was busy for 0.02 s each, where a step takes 0.1 s without the profiler."""
    fields: dict[str, Any] = {
        "source": "torch.profiler",
        "step_seconds": (0.5, 0.125, 0.125, 0.125, 0.125),
        "gpus": (make_gpu_activity(),),
        "kernel_seconds_per_step": 0.02,
        "kernel_busy_share": 0.2,
        "profiled_busy_share": 0.16,
    }
    return DeviceProfile(**(fields | overrides))

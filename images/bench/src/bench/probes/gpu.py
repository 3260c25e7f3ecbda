"""The GPU as NVML sees it: the framework's CUDA versions in, a Gpu record out."""

import os

import pynvml

from bench.schema import Gpu


def read_gpu(cuda_version: str | None, cudnn_version: str | None) -> Gpu:
    """Return the first GPU that this process may use. Raises pynvml.NVMLError where there is none."""
    pynvml.nvmlInit()
    try:
        handle = _find_visible_gpu()
        return Gpu(
            name=pynvml.nvmlDeviceGetName(handle),
            uuid=pynvml.nvmlDeviceGetUUID(handle),
            driver_version=pynvml.nvmlSystemGetDriverVersion(),
            memory_total_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
            cuda_version=cuda_version,
            cudnn_version=cudnn_version,
        )
    finally:
        pynvml.nvmlShutdown()


def _find_visible_gpu() -> object:
    """Return NVML's handle of the first device (index or UUID) in CUDA_VISIBLE_DEVICES, else of device 0."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "0"
    if first.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(first))
    return pynvml.nvmlDeviceGetHandleByUUID(first)

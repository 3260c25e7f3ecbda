"""What this machine has to run cells on: NVML in, the number of NVIDIA GPUs out."""

import pynvml


def count_gpus() -> int:
    """Return the number of NVIDIA GPUs that the driver shows; 0 where there is no driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        return int(pynvml.nvmlDeviceGetCount())
    finally:
        pynvml.nvmlShutdown()

"""Tells faults of the machine (GPU, driver, disk) from failures of the cell: another machine may measure the cell."""

import errno
import os
import re
import shutil
import tempfile

from bench.errors import NodeFaultError
from bench.frameworks.interface import DeviceMissingError

# Caches of compiled kernels.
MIN_DISK_BYTES = 64 * 1024**2
NO_SPACE = "No space left on device"
"""The C library's text for ENOSPC."""

# What CUDA says where it cannot start or the hardware fails, and never for what a kernel or an allocation does. In the
# words of cudaGetErrorString, which PyTorch prints, and by the names of the driver's API, which TensorFlow and XLA
# print: https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html (cudaError),
# https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html (CUresult). The last three are PyTorch's own
# (torch/csrc/cuda/Module.cpp, torch/cuda/__init__.py).
_WORDS = (
    "no CUDA-capable device is detected",
    "all CUDA-capable devices are busy or unavailable",
    "system not yet initialized",
    "system has unsupported display driver / cuda driver combination",
    "forward compatibility was attempted on non supported HW",
    "CUDA driver version is insufficient for CUDA runtime version",
    "CUDA driver is a stub library",
    "CUDA error: initialization error",
    "CUDA error: unknown error",
    "uncorrectable ECC error encountered",
    "uncorrectable NVLink error detected",
    "CUDA_ERROR_NOT_INITIALIZED",
    "CUDA_ERROR_STUB_LIBRARY",
    "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "CUDA_ERROR_NO_DEVICE",
    "CUDA_ERROR_ECC_UNCORRECTABLE",
    "CUDA_ERROR_NVLINK_UNCORRECTABLE",
    "CUDA_ERROR_SYSTEM_NOT_READY",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    "CUDA_ERROR_UNKNOWN",
    "Unexpected error from cudaGetDeviceCount",
    "CUDA driver initialization failed",
    "Found no NVIDIA driver on your system",
    "No CUDA GPUs are available",
    "Failed call to cuDeviceGet",  # TensorFlow's own, seen in its image on a card whose CUDA starts and does no more
)
_CUDA_FAULT = re.compile("|".join(map(re.escape, _WORDS)))


def is_node_fault(error: BaseException) -> bool:
    """Return whether an error that came before the first step is the machine's, whatever cell it measures.

    A full disk is the machine's only if /tmp lies on it: /dev/shm and the volume of the compile cache have limits of
    their own, and a kubelet evicts a pod that exceeds its limit for /tmp.
    """
    if isinstance(error, NodeFaultError | DeviceMissingError):
        return True
    if (isinstance(error, OSError) and error.errno == errno.ENOSPC) or NO_SPACE in str(error):
        return explain_full_disk() is not None
    return _is_of_a_library(error) and _CUDA_FAULT.search(str(error)) is not None


def _is_of_a_library(error: BaseException) -> bool:
    """Return whether CUDA may have caused it; the errors of TensorFlow are no RuntimeError."""
    return isinstance(error, RuntimeError | OSError) or type(error).__module__.startswith("tensorflow.")


TEMPORARY_FOLDER = "/tmp"


def explain_full_disk() -> str | None:
    """Return how little room the disk of /tmp has, or None if there is enough to begin."""
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:  # it writes a file into each folder to try it, which a full disk refuses
        folder = TEMPORARY_FOLDER if os.path.isdir(TEMPORARY_FOLDER) else "/"
    free = shutil.disk_usage(folder).free
    if free >= MIN_DISK_BYTES:
        return None
    return f"disk: {folder} has {free / 1024**2:.0f} MiB left, {MIN_DISK_BYTES / 1024**2:.0f} are needed"


def name_node_fault(reason: str) -> NodeFaultError:
    """Return the error that ends a container with EXIT_NODE_FAULT, in one line."""
    return NodeFaultError(f"fault of this machine, not of the cell: {reason}")

"""Describes the errors that end attempts: tells memory that ran out and faults of the machine from all others.

A fault of the machine (GPU, driver, disk) is none of the cell: another machine may measure it.
"""

import errno
import os
import re
import shutil
import tempfile
import traceback

from pydantic import ValidationError

from bench.errors import NodeFaultError, UserError
from bench.frameworks.interface import DeviceMissingError, Framework
from bench.redaction import hide_secrets
from bench.schema import Failure, FailureKind, Status, describe_error
from bench.tenants.meeting import NoCommonWindowError

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
    # TensorFlow's own, seen in its image on a card whose CUDA starts and does no more: not even name an error.
    "Failed call to cuDeviceGet",
    "CUDA error: : UNKNOWN ERROR",
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
    is_of_a_library = isinstance(error, RuntimeError | OSError) or type(error).__module__.startswith("tensorflow.")
    return is_of_a_library and _CUDA_FAULT.search(str(error)) is not None


TEMPORARY_FOLDER = "/tmp"


def explain_full_disk() -> str | None:
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:  # it writes a file into each folder to try it, which a full disk refuses
        folder = TEMPORARY_FOLDER if os.path.isdir(TEMPORARY_FOLDER) else "/"
    free = shutil.disk_usage(folder).free
    if free >= MIN_DISK_BYTES:
        return None
    return f"disk: {folder} has {free / 1024**2:.0f} MiB left, {MIN_DISK_BYTES / 1024**2:.0f} are needed"


def name_node_fault(reason: str) -> NodeFaultError:
    return NodeFaultError(f"fault of this machine, not of the cell: {reason}")


TRACEBACK_CHARACTERS = 8_000
MESSAGE_CHARACTERS = 500
# TensorFlow's words for what did not fit, on lines below the layer's name (eager) or the traceback of the graph.
CAUSE_WORDS = ("OOM when allocating", "failed to allocate memory")


def describe_failure(error: Exception, framework: Framework | None) -> tuple[Status, Failure]:
    """Return the status and reason of an attempt that this error ended; call it while the error is handled."""
    if isinstance(error, NoCommonWindowError | UserError):  # about the group or the user's data: needs no traceback
        kind: FailureKind = "no-common-window" if isinstance(error, NoCommonWindowError) else "exception"
        return "failed", Failure(kind=kind, message=make_printable(str(error))[:MESSAGE_CHARACTERS])
    message = summarize_error(error)
    tail = make_printable(traceback.format_exc())[-TRACEBACK_CHARACTERS:]
    if isinstance(error, ImportError) and framework is None:
        return "failed", Failure(kind="missing-framework", message=message, stderr_tail=tail)
    if isinstance(error, MemoryError) or (framework and framework.is_out_of_memory(error)):
        return "oom", Failure(kind="out-of-memory", message=message, stderr_tail=tail)
    return "failed", Failure(kind="exception", message=message, stderr_tail=tail)


def summarize_error(error: Exception) -> str:
    """Return one line for people: the error's type and its first line, or the line with CAUSE_WORDS."""
    if isinstance(error, ValidationError):  # of a part of the record
        return f"the measurement gave what no record can hold: {describe_error(error)}"
    lines = [line.strip() for line in make_printable(str(error)).splitlines() if line.strip()]
    with_cause = [line for line in lines if any(words in line for words in CAUSE_WORDS)]
    return f"{type(error).__name__}: {[*with_cause, *lines, 'no message'][0]}"[:MESSAGE_CHARACTERS]


def make_printable(text: str) -> str:
    """Return `text` without colour codes and credentials, and with `?` for what UTF-8 cannot hold."""
    return hide_secrets(re.sub(r"\x1b\[[0-9;]*m", "", text).encode(errors="replace").decode())

"""Finds out whether CUDA starts on this machine, in seconds and without a framework.

NVML and CUDA are two libraries of the driver, and one may work without the other: a container got only the first, a
kernel module is missing or of another version, the card has failed since. A framework says of all this that it sees no
GPU. CUDA's own error code says which it is (cuInit and CUresult of its driver API,
https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__INITIALIZE.html).
"""

import ctypes
import os
import subprocess
import sys

LIBRARY = "libcuda.so.1"
START_SECONDS = 120.0
"""Longer than CUDA takes to start on a machine with many GPUs whose driver has to be loaded first; a failing GPU may
keep a program waiting for ever."""


def explain_failed_start() -> str | None:
    """Return why CUDA does not start, in one line, or None if it does.

    Asked in a child process: once started, CUDA keeps to the devices that were visible then, and it may crash.
    """
    child = subprocess.Popen([sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True)
    try:
        answer, _ = child.communicate(timeout=START_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()  # and not waited for: a process that hangs in the driver may not die
        return f"CUDA does not start: {LIBRARY} has not answered for {START_SECONDS:.0f} s"
    if child.returncode:
        return f"CUDA does not start: {LIBRARY} ended its process with code {child.returncode}"
    return answer.strip() or None


def _start_cuda() -> str:
    """Start CUDA in this process and return what went wrong; empty if it can use a device."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        return f"CUDA does not start: its driver library cannot be loaded ({error})"
    code = library.cuInit(0)
    if code:
        return f"CUDA does not start: cuInit ended with code {code}, {_name_code(library, code)}"
    num_devices = ctypes.c_int()
    code = library.cuDeviceGetCount(ctypes.byref(num_devices))
    if code or not num_devices.value:
        return f"CUDA starts and finds no device (cuDeviceGetCount ended with code {code})"
    return ""


def _name_code(library: ctypes.CDLL, code: int) -> str:
    """Return CUDA's own name of an error code and its words for it."""
    found = []
    for function in (library.cuGetErrorName, library.cuGetErrorString):
        text = ctypes.c_char_p()
        if function(code, ctypes.byref(text)) == 0 and text.value:
            found.append(text.value.decode(errors="replace"))
    return ": ".join(found) or "which it has no name for"


if __name__ == "__main__":
    print(_start_cuda(), flush=True)
    os._exit(0)  # the driver's threads are not waited for

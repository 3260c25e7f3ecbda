"""Asks CUDA's driver, without a framework: whether it starts, whether MPS is in force, how fast memory is copied.

NVML and CUDA are two libraries of the driver, and one may work without the other: a container got only the first, a
kernel module is missing or of another version, the card has failed since. A framework says of all this that it sees no
GPU. CUDA's own error code says which it is (cuInit and CUresult of its driver API,
https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__INITIALIZE.html).
"""

import ctypes
import os
import subprocess
import sys
from contextlib import ExitStack
from time import perf_counter

LIBRARY = "libcuda.so.1"
START_SECONDS = 120.0
"""Longer than CUDA takes to start on a machine with many GPUs whose driver has to be loaded first; a failing GPU may
keep a program waiting for ever."""


class CudaError(RuntimeError):
    """A function of CUDA's driver API failed."""


class _Driver:
    """CUDA's driver library, whose functions return an error code."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self.call("cuInit", ctypes.c_uint(0))

    def call(self, name: str, *arguments: object) -> None:
        code = self._library[name](*arguments)
        if not code:
            return
        found = []
        for naming in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            if self._library[naming](code, ctypes.byref(text)) == 0 and text.value:
                found.append(text.value.decode(errors="replace"))
        raise CudaError(f"{name} ended with code {code}, {': '.join(found) or 'which it has no name for'}")


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
    num_devices = ctypes.c_int()
    try:
        _Driver().call("cuDeviceGetCount", ctypes.byref(num_devices))
    except OSError as error:
        return f"CUDA does not start: its driver library cannot be loaded ({error})"
    except CudaError as error:
        return f"CUDA does not start: {error}"
    return "" if num_devices.value else "CUDA starts and finds no device"


# Copies within a GPU's memory use the context that the framework has on the GPU, and no kernel of the framework, so
# that it is the same work in every framework. https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html
MIN_COPY_BYTES, MAX_COPY_BYTES = 128 * 2**20, 512 * 2**20
"""Of the array. At most what is four times the cache of every GPU in gpus.csv; at least what takes long enough, 0.1 ms
on an H200, for the launch of a copy to be hidden behind the one before."""
CACHE_MULTIPLE = 4
"""As STREAM's rule for arrays on a CPU (bench.probes.memory)."""
NUM_BATCHES = 10
COPIES_PER_BATCH = 5
"""Back to back, so that the launch of one is hidden behind another."""


def choose_gpu_copy_bytes(cache_bytes: int) -> int:
    wanted = CACHE_MULTIPLE * cache_bytes or MAX_COPY_BYTES
    return min(max(MIN_COPY_BYTES, wanted), MAX_COPY_BYTES)


def measure_gpu_copy(num_bytes: int) -> float:
    """Return the bytes per second, read and written, of the fastest copy of `num_bytes` in the first GPU's memory.

    Raises CudaError where CUDA refuses: two arrays of this size may not fit beside what the framework keeps.
    """
    driver, device, context, seconds = _Driver(), ctypes.c_int(), ctypes.c_void_p(), list[float]()
    source, target, size = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t(num_bytes)
    driver.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
    with ExitStack() as given_back:
        driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)  # the one that frameworks use
        given_back.callback(driver.call, "cuDevicePrimaryCtxRelease_v2", device)
        driver.call("cuCtxPushCurrent_v2", context)
        given_back.callback(driver.call, "cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        for address in (source, target):
            driver.call("cuMemAlloc_v2", ctypes.byref(address), size)
            given_back.callback(driver.call, "cuMemFree_v2", address)
        driver.call("cuMemsetD8_v2", source, ctypes.c_ubyte(1), size)
        for _ in range(NUM_BATCHES):
            driver.call("cuCtxSynchronize")
            start = perf_counter()
            for _ in range(COPIES_PER_BATCH):
                driver.call("cuMemcpyDtoDAsync_v2", target, source, size, None)
            driver.call("cuCtxSynchronize")
            seconds.append(perf_counter() - start)
    return 2 * num_bytes * COPIES_PER_BATCH / min(seconds)


# CU_DEVICE_ATTRIBUTE_MPS_ENABLED of the driver's cuda.h, from CUDA 12.4 on: "Indicates if contexts created on this
# device will be shared via MPS". A program whose MPS daemon cannot be reached runs on without MPS and says nothing.
MPS_ENABLED_ATTRIBUTE = 133


def read_mps_state() -> bool | None:
    device, answer = ctypes.c_int(), ctypes.c_int()
    try:
        driver = _Driver()
        driver.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        driver.call("cuDeviceGetAttribute", ctypes.byref(answer), ctypes.c_int(MPS_ENABLED_ATTRIBUTE), device)
    except (OSError, CudaError):
        return None
    return bool(answer.value)


if __name__ == "__main__":
    print(_start_cuda(), flush=True)
    os._exit(0)  # the driver's threads are not waited for

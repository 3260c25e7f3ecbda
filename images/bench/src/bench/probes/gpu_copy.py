"""Measures the bandwidth of a GPU's memory by copies within it, through CUDA's driver API.

It uses the context that the framework has on the GPU, and no kernel of the framework, so that it is the same work in
every framework. https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from bench.probes.cuda_start import LIBRARY

MIN_BYTES, MAX_BYTES = 128 * 2**20, 512 * 2**20
"""Of the array. At most what is four times the cache of every GPU in gpus.csv; at least what takes long enough, 0.1 ms
on an H200, for the launch of a copy to be hidden behind the one before."""
CACHE_MULTIPLE = 4
"""As STREAM's rule for arrays on a CPU (bench.probes.memory_copy)."""
NUM_BATCHES = 10
COPIES_PER_BATCH = 5
"""Back to back, so that the launch of one is hidden behind another."""


class CudaError(RuntimeError):
    """A function of CUDA's driver API failed."""


def choose_gpu_copy_bytes(cache_bytes: int) -> int:
    """Return the size of the array for a GPU with so large a cache; 0: unknown."""
    wanted = CACHE_MULTIPLE * cache_bytes or MAX_BYTES
    return min(max(MIN_BYTES, wanted), MAX_BYTES)


def measure_gpu_copy(num_bytes: int, device: int = 0) -> float:
    """Return the bytes per second, read and written, of the fastest copies of `num_bytes` within a GPU's memory.

    `device`: its number among those that the process sees. Raises CudaError where CUDA refuses: two arrays of this size
    may not fit beside what the framework keeps.
    """
    driver = _Driver()
    with driver.use_context(device), driver.allocate(num_bytes) as source, driver.allocate(num_bytes) as target:
        driver.call("cuMemsetD8_v2", source, ctypes.c_ubyte(1), ctypes.c_size_t(num_bytes))
        seconds = [_time_batch(driver, source, target, num_bytes) for _ in range(NUM_BATCHES)]
    return 2 * num_bytes * COPIES_PER_BATCH / min(seconds)


def _time_batch(driver: "_Driver", source: ctypes.c_uint64, target: ctypes.c_uint64, num_bytes: int) -> float:
    driver.call("cuCtxSynchronize")
    start = perf_counter()
    for _ in range(COPIES_PER_BATCH):
        driver.call("cuMemcpyDtoDAsync_v2", target, source, ctypes.c_size_t(num_bytes), None)
    driver.call("cuCtxSynchronize")
    return perf_counter() - start


class _Driver:
    """CUDA's driver library, whose functions return an error code."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self.call("cuInit", ctypes.c_uint(0))

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the library; raise CudaError if it fails."""
        code = self._library[name](*arguments)
        if code:
            raise CudaError(f"{name} ended with code {code}")

    @contextmanager
    def use_context(self, index: int) -> Iterator[None]:
        """Make the primary context of a device current, which is the one that frameworks use, and put back the last."""
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        try:
            self.call("cuCtxPushCurrent_v2", context)
            try:
                yield
            finally:
                self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        finally:
            self.call("cuDevicePrimaryCtxRelease_v2", device)

    @contextmanager
    def allocate(self, num_bytes: int) -> Iterator[ctypes.c_uint64]:
        """Yield the address of so many bytes of the current device's memory."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(num_bytes))
        try:
            yield address
        finally:
            self.call("cuMemFree_v2", address)

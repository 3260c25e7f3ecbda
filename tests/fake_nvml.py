"""A made-up libnvidia-ml.so for the binding of NVML: three GPUs and a MIG slice that say what a test wants.

The functions have NVML's names, arguments and error codes (nvml.h); `pynvml` calls them as it calls the driver's.
"""
# ruff: noqa: N802  the names are the library's

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml

UUIDS = ("GPU-aaaa1111", "GPU-bbbb2222", "GPU-bbbb3333", "MIG-cccc4444")
NUM_GPUS = 3  # the slice is not counted among them
MIB = 2**20
# What a function with one value for an answer says; the keys are those of nvml.h.
ANSWERS: dict[str, int] = {
    "nvmlDeviceGetPowerUsage": 60_500,  # mW
    "nvmlDeviceGetEnforcedPowerLimit": 70_000,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4 | 0x20,  # software power cap and software thermal slowdown
}


class FakeNvml:
    """Functions named in `refusals` return their error code."""

    def __init__(self) -> None:
        self.refusals: dict[str, int] = {}
        self.processes: list[tuple[int, int | None]] = []
        self.memory_used_bytes = 3 * MIB
        self.energy_millijoules = [1_000_000]
        """The last one for ever."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name in ANSWERS:
            return self._guard(name, lambda handle, answer: _set(answer, ANSWERS[name]))
        if not hasattr(type(self), f"_{name}"):
            raise AttributeError(name)
        return self._guard(name, getattr(self, f"_{name}"))

    def _guard(self, name: str, function: Callable[..., int | None]) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            if name in self.refusals:
                return self.refusals[name]
            return function(*(getattr(argument, "_obj", argument) for argument in arguments)) or 0  # behind byref

        return call

    def _nvmlInitWithFlags(self, flags: int) -> None:
        pass

    def _nvmlShutdown(self) -> None:
        pass

    def _nvmlSystemGetDriverVersion(self, version: Any, size: Any) -> None:
        version.value = b"550.54.15"

    def _nvmlDeviceGetCount_v2(self, count: Any) -> None:
        count.value = NUM_GPUS

    def _nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int | None:
        if index.value >= NUM_GPUS:
            return int(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        _point(handle, index.value)
        return None

    def _nvmlDeviceGetHandleByUUID(self, uuid: Any, handle: Any) -> int | None:
        text = uuid.value.decode()
        if text not in UUIDS:
            return int(pynvml.NVML_ERROR_NOT_FOUND)
        _point(handle, UUIDS.index(text))
        return None

    def _nvmlDeviceGetName(self, handle: Any, name: Any, size: Any) -> None:
        name.value = b"Tesla T4"

    def _nvmlDeviceGetUUID(self, handle: Any, uuid: Any, size: Any) -> None:
        uuid.value = UUIDS[_read_index(handle)].encode()

    def _nvmlDeviceGetCudaComputeCapability(self, handle: Any, major: Any, minor: Any) -> None:
        major.value, minor.value = 7, 5

    def _nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> None:
        memory.total, memory.used = 15_360 * MIB, self.memory_used_bytes + 450 * MIB

    def _nvmlDeviceGetMemoryInfo_v2(self, handle: Any, memory: Any) -> None:
        memory.total, memory.used, memory.reserved = 15_360 * MIB, self.memory_used_bytes, 450 * MIB
        memory.free = memory.total - memory.used - memory.reserved

    def _nvmlDeviceGetMaxClockInfo(self, handle: Any, kind: Any, clock: Any) -> None:
        clock.value = {pynvml.NVML_CLOCK_SM: 1590}[kind.value]

    def _nvmlDeviceGetClockInfo(self, handle: Any, kind: Any, clock: Any) -> None:
        clock.value = {pynvml.NVML_CLOCK_SM: 1500}[kind.value]

    def _nvmlDeviceGetTemperature(self, handle: Any, sensor: Any, temperature: Any) -> None:
        temperature.value = {pynvml.NVML_TEMPERATURE_GPU: 55}[sensor.value]

    def _nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, energy: Any) -> None:
        energy.value = self.energy_millijoules[0]
        if len(self.energy_millijoules) > 1:
            self.energy_millijoules.pop(0)

    def _nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, count: Any, processes: Any) -> int | None:
        if not self.processes:
            count.value = 0
            return None
        if processes is None:
            count.value = len(self.processes)
            return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
        for index, (pid, num_bytes) in enumerate(self.processes):
            processes[index].pid = pid
            unknown = pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value
            processes[index].usedGpuMemory = unknown if num_bytes is None else num_bytes
        count.value = len(self.processes)
        return None


def _set(answer: Any, value: int) -> None:
    answer.value = value


def _point(handle: Any, index: int) -> None:
    """Make the handle an opaque pointer: the device's number plus one, since null is none."""
    ctypes.c_void_p.from_address(ctypes.addressof(handle)).value = index + 1


def _read_index(handle: Any) -> int:
    address = ctypes.cast(handle, ctypes.c_void_p).value
    assert address is not None
    return address - 1

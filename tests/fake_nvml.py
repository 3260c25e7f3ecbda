"""A made-up libnvidia-ml.so for the binding of NVML: three GPUs and two MIG slices that say what a test wants.

The functions have NVML's names, arguments and error codes (nvml.h); `pynvml` calls them as it calls the driver's.
"""
# ruff: noqa: N802  the names are the library's

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml
import pytest

UUIDS = ("GPU-aaaa1111", "GPU-bbbb2222", "GPU-bbbb3333", "MIG-cccc4444", "MIG-dddd5555")
NUM_GPUS = 3  # the slices are not counted among them
MIB = 2**20
# What a function with one value for an answer says, or for one kind of it; the names are those of nvml.h.
ANSWERS: dict[str, int | dict[int, int]] = {
    "nvmlDeviceGetPowerUsage": 60_500,  # mW
    "nvmlDeviceGetEnforcedPowerLimit": 70_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 70_000,
    "nvmlDeviceGetCurrPcieLinkGeneration": 1,
    "nvmlDeviceGetCurrPcieLinkWidth": 8,
    "nvmlDeviceGetMaxPcieLinkGeneration": 3,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetMaxMigDeviceCount": 7,
    "nvmlDeviceGetMaxClockInfo": {pynvml.NVML_CLOCK_SM: 1590},
    "nvmlDeviceGetClockInfo": {pynvml.NVML_CLOCK_SM: 1500},
    "nvmlDeviceGetApplicationsClock": {pynvml.NVML_CLOCK_SM: 900},
    "nvmlDeviceGetDefaultApplicationsClock": {pynvml.NVML_CLOCK_SM: 1000},
    "nvmlDeviceGetTemperature": {pynvml.NVML_TEMPERATURE_GPU: 55},
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4 | 0x20,  # software power cap and software thermal slowdown
}


class FakeNvml:
    """Functions named in `refusals` return their error code."""

    def __init__(self) -> None:
        self.refusals: dict[str, int] = {}
        self.processes: list[tuple[int, int | None]] = []
        self.mps_clients: list[tuple[int, int | None]] | None = None
        """None: the driver does not know of them."""
        self.names = ("Tesla T4",) * NUM_GPUS
        self.compute_mode = pynvml.NVML_COMPUTEMODE_DEFAULT
        self.memory_used_bytes = 3 * MIB
        self.energy_millijoules = [1_000_000]
        self.num_energy_readings = 0
        """The last one for ever."""
        self.slices: dict[int, tuple[int | None, ...]] = {}
        """The numbers of the slices of each GPU in MIG mode; None is one that this process may not use."""
        self.held_nanoseconds: dict[int, list[int]] = {}
        """What each field of a performance policy counts; the last value for ever. Others are not supported."""
        self.clock_samples: list[tuple[int, int]] = []
        """(microseconds since 1970, MHz)."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name in ANSWERS:
            return self._guard(name, lambda *arguments: _answer(ANSWERS[name], *arguments))
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
        index = _read_index(handle)
        name.value = b"NVIDIA A100-SXM4-40GB MIG 1g.5gb" if index >= NUM_GPUS else self.names[index].encode()

    def _nvmlDeviceGetUUID(self, handle: Any, uuid: Any, size: Any) -> None:
        uuid.value = UUIDS[_read_index(handle)].encode()

    def _nvmlDeviceGetCudaComputeCapability(self, handle: Any, major: Any, minor: Any) -> None:
        major.value, minor.value = 7, 5

    def _nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> None:
        memory.total, memory.used = 15_360 * MIB, self.memory_used_bytes + 450 * MIB

    def _nvmlDeviceGetMemoryInfo_v2(self, handle: Any, memory: Any) -> None:
        memory.total, memory.used, memory.reserved = 15_360 * MIB, self.memory_used_bytes, 450 * MIB
        memory.free = memory.total - memory.used - memory.reserved

    def _nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, energy: Any) -> None:
        self.num_energy_readings += 1
        energy.value = self.energy_millijoules[0]
        if len(self.energy_millijoules) > 1:
            self.energy_millijoules.pop(0)

    def _nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, count: Any, processes: Any) -> int | None:
        return _list_processes(self.processes, count, processes)

    def _nvmlDeviceGetMPSComputeRunningProcesses_v3(self, handle: Any, count: Any, processes: Any) -> int | None:
        if self.mps_clients is None:
            return int(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return _list_processes(self.mps_clients, count, processes)

    def _nvmlDeviceGetComputeMode(self, handle: Any, mode: Any) -> None:
        mode.value = self.compute_mode

    def _nvmlDeviceGetEccMode(self, handle: Any, current: Any, pending: Any) -> None:
        current.value, pending.value = 1, 0

    def _nvmlDeviceGetUtilizationRates(self, handle: Any, rates: Any) -> None:
        rates.gpu, rates.memory = 80, 40

    def _nvmlDeviceGetMigMode(self, handle: Any, current: Any, pending: Any) -> int | None:
        index = _read_index(handle)
        if index >= NUM_GPUS:
            return int(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        current.value = pending.value = int(index in self.slices)
        return None

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: Any, mig_slice: Any) -> int | None:
        numbers = dict(enumerate(self.slices[_read_index(handle)]))
        number = numbers.get(index.value)
        if number is None:
            return int(pynvml.NVML_ERROR_NO_PERMISSION if index.value in numbers else pynvml.NVML_ERROR_NOT_FOUND)
        _point(mig_slice, number)
        return None

    def _nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, mig_slice: Any, handle: Any) -> int | None:
        number = _read_index(mig_slice)
        gpus = [gpu for gpu, numbers in self.slices.items() if number in numbers]
        if not gpus:
            return int(pynvml.NVML_ERROR_NOT_FOUND)
        _point(handle, gpus[0])
        return None

    def _nvmlDeviceGetFieldValues(self, handle: Any, count: Any, fields: Any) -> None:
        for field in fields:
            values = self.held_nanoseconds.get(field.fieldId)
            field.nvmlReturn = pynvml.NVML_ERROR_NOT_SUPPORTED if values is None else pynvml.NVML_SUCCESS
            if values is not None:
                field.valueType = pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
                field.value.ullVal = values.pop(0) if len(values) > 1 else values[0]

    def _nvmlDeviceGetSamples(
        self, handle: Any, kind: Any, since: Any, value_type: Any, count: Any, samples: Any
    ) -> int | None:
        found = [sample for sample in self.clock_samples if sample[0] > since.value]
        if kind.value != pynvml.NVML_PROCESSOR_CLK_SAMPLES or not found:
            return int(pynvml.NVML_ERROR_NOT_FOUND)
        count.value, value_type.value = len(found), pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
        for index, (microseconds, clock) in enumerate(found if samples else ()):
            samples[index].timeStamp, samples[index].sampleValue.uiVal = microseconds, clock
        return None


def install_nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Put a made-up library in the place of the driver's for one test, and return it."""
    library = FakeNvml()
    monkeypatch.setattr("pynvml.nvmlLib", library)
    monkeypatch.setattr("pynvml._nvmlGetFunctionPointer_cache", {})
    return library


def _list_processes(found: list[tuple[int, int | None]], count: Any, processes: Any) -> int | None:
    if found and processes is None:
        count.value = len(found)
        return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
    for index, (pid, num_bytes) in enumerate(found):
        processes[index].pid = pid
        unknown = pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value
        processes[index].usedGpuMemory = unknown if num_bytes is None else num_bytes
    count.value = len(found)
    return None


def _answer(known: int | dict[int, int], handle: Any, *arguments: Any) -> None:
    arguments[-1].value = known if isinstance(known, int) else known[arguments[0].value]


def _point(handle: Any, index: int) -> None:
    """Make the handle an opaque pointer: the device's number plus one, since null is none."""
    ctypes.c_void_p.from_address(ctypes.addressof(handle)).value = index + 1


def _read_index(handle: Any) -> int:
    address = ctypes.cast(handle, ctypes.c_void_p).value
    assert address is not None
    return address - 1

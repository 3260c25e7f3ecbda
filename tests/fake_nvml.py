"""Made-up functions of NVML for one test: three GPUs and two MIG slices that say what a test wants.

They have the names, arguments and errors of the binding, pynvml; tests/gpu_driver has a library for the binding itself.
"""
# ruff: noqa: N802  the names are the binding's

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

UUIDS = ("GPU-aaaa1111", "GPU-bbbb2222", "GPU-bbbb3333", "MIG-cccc4444", "MIG-dddd5555")
NUM_GPUS = 3  # the slices are not counted among them
MIB = 2**20
# What a function answers, or for one kind of it.
ANSWERS: dict[str, Any] = {
    "nvmlInit": None,
    "nvmlShutdown": None,
    "nvmlSystemGetDriverVersion": "550.54.15",
    "nvmlDeviceGetCount": NUM_GPUS,
    "nvmlDeviceGetCudaComputeCapability": (7, 5),
    "nvmlDeviceGetCurrentEccMode": 1,
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
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=80, memory=40),
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4 | 0x20,  # software power cap and software thermal slowdown
}


class FakeNvml:
    """What the functions answer. A handle is a place in UUIDS."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ("Tesla T4",) * NUM_GPUS
        self.refusals: dict[str, int] = {}
        """The error of each function that refuses."""
        self.processes: list[tuple[int, int | None]] = []
        self.mps_clients: list[tuple[int, int | None]] | None = None
        """None: the driver does not know of them."""
        self.compute_mode = pynvml.NVML_COMPUTEMODE_DEFAULT
        self.memory_used_bytes = 3 * MIB
        self.energy_millijoules = [1_000_000]
        """What the counters of energy say in turn; the last one for ever."""
        self.num_energy_readings = 0
        self.slices: dict[int, tuple[int | None, ...]] = {}
        """The numbers of the slices of each GPU in MIG mode; None is one that this process may not use."""
        self.held_nanoseconds: dict[int, list[int]] = {}
        """What each field of a performance policy counts; the last value for ever. Others are not supported."""
        self.clock_samples: list[tuple[int, int]] = []
        """(microseconds since 1970, MHz)."""

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index if index < NUM_GPUS else refuse(pynvml.NVML_ERROR_INVALID_ARGUMENT)

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        return UUIDS.index(uuid) if uuid in UUIDS else refuse(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "NVIDIA A100-SXM4-40GB MIG 1g.5gb" if handle >= NUM_GPUS else self.names[handle]

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return UUIDS[handle]

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int | None = None) -> SimpleNamespace:
        total, reserved, used = 15_360 * MIB, 450 * MIB, self.memory_used_bytes
        return SimpleNamespace(
            total=total, used=used if version else used + reserved, free=total - used - reserved, reserved=reserved
        )

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        self.num_energy_readings += 1
        return take(self.energy_millijoules)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.processes]

    def nvmlDeviceGetMPSComputeRunningProcesses_v3(self, handle: int) -> list[SimpleNamespace]:
        if self.mps_clients is None:
            refuse(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.mps_clients or ()]

    def nvmlDeviceGetComputeMode(self, handle: int) -> int:
        return int(self.compute_mode)

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        return [int(handle in self.slices)] * 2 if handle < NUM_GPUS else refuse(pynvml.NVML_ERROR_INVALID_ARGUMENT)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, index: int) -> int:
        if index >= len(self.slices[handle]):
            refuse(pynvml.NVML_ERROR_NOT_FOUND)
        number = self.slices[handle][index]
        return refuse(pynvml.NVML_ERROR_NO_PERMISSION) if number is None else number

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, mig_slice: int) -> int:
        gpus = [gpu for gpu, numbers in self.slices.items() if mig_slice in numbers]
        return gpus[0] if gpus else refuse(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetFieldValues(self, handle: int, fields: Sequence[int]) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(
                fieldId=field,
                nvmlReturn=pynvml.NVML_SUCCESS if field in self.held_nanoseconds else pynvml.NVML_ERROR_NOT_SUPPORTED,
                valueType=pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
                value=SimpleNamespace(ullVal=take(self.held_nanoseconds.get(field, [0]))),
            )
            for field in fields
        ]

    def nvmlDeviceGetSamples(self, handle: int, kind: int, since: int) -> tuple[int, list[SimpleNamespace]]:
        found = [sample for sample in self.clock_samples if sample[0] > since]
        if kind != pynvml.NVML_PROCESSOR_CLK_SAMPLES or not found:
            refuse(pynvml.NVML_ERROR_NOT_FOUND)
        samples = [
            SimpleNamespace(timeStamp=moment, sampleValue=SimpleNamespace(uiVal=clock)) for moment, clock in found
        ]
        return pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, samples


def install_nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Put made-up functions in the place of the binding's for one test, and return what they answer by."""
    fake = FakeNvml()

    def guard(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: refuse(fake.refusals[name]) if name in fake.refusals else function(*arguments)

    def answer(known: Any) -> Callable[..., Any]:
        return lambda *arguments: known[arguments[1]] if isinstance(known, dict) else known

    own = {name: getattr(fake, name) for name in dir(fake) if name.startswith("nvml")}
    for name, function in ({name: answer(known) for name, known in ANSWERS.items()} | own).items():
        monkeypatch.setattr(pynvml, name, guard(name, function))
    return fake


def refuse(code: int) -> Any:
    raise pynvml.NVMLError(code)


def take(values: list[int]) -> int:
    return values.pop(0) if len(values) > 1 else values[0]

"""Reads one device through NVIDIA's management library, NVML. What cannot be read is None.

A device may not support a query, a driver may not know it yet, a container may not be allowed to make it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pynvml

from bench.schema import ForeignProcess

T = TypeVar("T")

NvmlError = pynvml.NVMLError

# NVML's reasons for a clock below the highest, in its own words (nvml.h, nvmlClocksEventReasons).
GPU_IDLE = "GPU idle"
APPLICATIONS_CLOCKS = "applications clocks setting"
SOFTWARE_POWER_CAP = "software power cap"
SOFTWARE_THERMAL = "software thermal slowdown"
HARDWARE_SLOWDOWN = "hardware slowdown"
HARDWARE_THERMAL = "hardware thermal slowdown"
HARDWARE_POWER_BRAKE = "hardware power brake slowdown"
THROTTLE_REASONS = {
    pynvml.nvmlClocksThrottleReasonGpuIdle: GPU_IDLE,
    pynvml.nvmlClocksThrottleReasonApplicationsClocksSetting: APPLICATIONS_CLOCKS,
    pynvml.nvmlClocksThrottleReasonSwPowerCap: SOFTWARE_POWER_CAP,
    pynvml.nvmlClocksThrottleReasonHwSlowdown: HARDWARE_SLOWDOWN,
    pynvml.nvmlClocksThrottleReasonSyncBoost: "sync boost",
    pynvml.nvmlClocksThrottleReasonSwThermalSlowdown: SOFTWARE_THERMAL,
    pynvml.nvmlClocksThrottleReasonHwThermalSlowdown: HARDWARE_THERMAL,
    pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown: HARDWARE_POWER_BRAKE,
    pynvml.nvmlClocksThrottleReasonDisplayClockSetting: "display clock setting",
}

# NVML's counters of the nanoseconds for which a policy held the clock down. Of the fields that count the single reasons
# only these have kept their numbers: that of software thermal slowdown was 251 and became 269, which drivers between
# the two use for something else.
THERMAL_POLICY = "thermal"
PERFORMANCE_POLICIES = {
    pynvml.NVML_FI_DEV_PERF_POLICY_POWER: "power",
    pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL: THERMAL_POLICY,
    pynvml.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST: "sync boost",
    pynvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT: "board limit",
    pynvml.NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION: "low utilization",
    pynvml.NVML_FI_DEV_PERF_POLICY_RELIABILITY: "reliability",
}

UNSIGNED_LONGS = (pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG, pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)  # of 64 bits


@contextmanager
def open_nvml() -> Iterator[None]:
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def read_driver_version() -> str:
    return str(pynvml.nvmlSystemGetDriverVersion())


class Device:
    """One GPU or MIG slice. Every `read_` returns None where the value cannot be read.

    NVML answers some questions about a slice with the values of its whole GPU, or refuses them, depending on the
    driver. Clocks, heat, power and energy are the whole GPU's, other slices' work included: of a slice they are None.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.name = str(pynvml.nvmlDeviceGetName(handle))
        self.uuid = str(pynvml.nvmlDeviceGetUUID(handle))
        self.is_slice = self.uuid.startswith("MIG-")
        self.memory_total_bytes = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
        self._gpu = _ask(lambda: pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)) if self.is_slice else None
        """The whole GPU of a slice, where it can be had."""

    @property
    def mig_profile(self) -> str | None:
        """The profile of a slice, `1g.5gb` of `NVIDIA A100-SXM4-40GB MIG 1g.5gb`; None for a whole GPU."""
        return self.name.rpartition(" MIG ")[2] if self.is_slice else None

    def read_compute_capability(self) -> str | None:
        handle = self._handle if self._gpu is None else self._gpu
        return _ask(lambda: "{}.{}".format(*pynvml.nvmlDeviceGetCudaComputeCapability(handle)))

    def read_ecc_enabled(self) -> bool | None:
        """Return whether the memory corrects errors, which costs bandwidth on memory without spare bits (GDDR)."""
        handle = self._handle if self._gpu is None else self._gpu
        return _ask(lambda: bool(pynvml.nvmlDeviceGetCurrentEccMode(handle)))

    def read_pcie_link(self) -> tuple[int | None, int | None, int | None, int | None]:
        """Return generation and number of lanes of the PCIe link now, then the most that device and machine allow.

        An idle GPU may lower the generation.
        """
        handle = self._handle if self._gpu is None else self._gpu
        return (
            _ask(lambda: int(pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle))),
            _ask(lambda: int(pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle))),
            _ask(lambda: int(pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle))),
            _ask(lambda: int(pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle))),
        )

    def read_memory_used_bytes(self) -> int | None:
        """Return the memory in use, the driver's reserve not counted; None before driver 510, which adds it in."""
        version = pynvml.nvmlMemory_v2
        return _ask(lambda: int(pynvml.nvmlDeviceGetMemoryInfo(self._handle, version=version).used))

    def read_memory_free_bytes(self) -> int | None:
        """Return the memory that can still be allocated; None before driver 510."""
        version = pynvml.nvmlMemory_v2
        return _ask(lambda: int(pynvml.nvmlDeviceGetMemoryInfo(self._handle, version=version).free))

    def read_compute_processes(self) -> tuple[ForeignProcess, ...] | None:
        """Return the processes that compute on the device; many containers hide them, and the list is empty.

        NVML keeps the clients of MPS apart from the other processes, on drivers that know of them.
        """
        processes = _ask(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        if processes is None:
            return None
        # By its version: without one the binding raises no NvmlError where a driver lacks it.
        clients = _ask(lambda: pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(self._handle)) or ()
        found = {process.pid: process.usedGpuMemory for process in (*clients, *processes)}
        return tuple(ForeignProcess(pid=pid, memory_bytes=num_bytes) for pid, num_bytes in found.items())

    def read_power_watts(self) -> float | None:
        """Return the power: the mean of the last second from Ampere on, of a shorter time before."""
        return self._ask_gpu(lambda gpu: pynvml.nvmlDeviceGetPowerUsage(gpu) / 1e3)

    def read_power_limit_watts(self) -> float | None:
        return self._ask_gpu(lambda gpu: pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1e3)

    def read_default_power_limit_watts(self) -> float | None:
        return self._ask_gpu(lambda gpu: pynvml.nvmlDeviceGetPowerManagementDefaultLimit(gpu) / 1e3)

    def read_energy_joules(self) -> float | None:
        """Return the joules used since the driver was loaded, updated about every 0.1 s; None for GPUs before Volta."""
        return self._ask_gpu(lambda gpu: pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1e3)

    def read_sm_clock_mhz(self) -> int | None:
        return self._ask_gpu(lambda gpu: int(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM)))

    def read_max_sm_clock_mhz(self) -> int | None:
        return self._ask_gpu(lambda gpu: int(pynvml.nvmlDeviceGetMaxClockInfo(gpu, pynvml.NVML_CLOCK_SM)))

    def read_application_clocks_mhz(self) -> tuple[int | None, int | None]:
        return (
            self._ask_gpu(lambda gpu: int(pynvml.nvmlDeviceGetApplicationsClock(gpu, pynvml.NVML_CLOCK_SM))),
            self._ask_gpu(lambda gpu: int(pynvml.nvmlDeviceGetDefaultApplicationsClock(gpu, pynvml.NVML_CLOCK_SM))),
        )

    def read_temperature_celsius(self) -> int | None:
        return self._ask_gpu(lambda gpu: int(pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU)))

    def read_utilization(self) -> float | None:
        """Return the share of the last sixth of a second to second in which a kernel was running."""
        return self._ask_gpu(lambda gpu: int(pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu) / 100)

    def read_throttle_reasons(self) -> tuple[str, ...] | None:
        mask = self._ask_gpu(lambda gpu: int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)))
        return None if mask is None else tuple(words for bit, words in THROTTLE_REASONS.items() if mask & bit)

    def read_held_seconds(self) -> dict[str, float]:
        """Return for how long each of PERFORMANCE_POLICIES has held the clock down; those that can be read."""
        fields = self._ask_gpu(lambda gpu: pynvml.nvmlDeviceGetFieldValues(gpu, list(PERFORMANCE_POLICIES)))
        return {
            PERFORMANCE_POLICIES[field.fieldId]: int(field.value.ullVal) / 1e9
            for field in fields or ()
            if field.nvmlReturn == pynvml.NVML_SUCCESS and field.valueType in UNSIGNED_LONGS
        }

    def read_clock_samples(self, since_microseconds: int) -> tuple[tuple[int, int], ...]:
        """Return (microseconds since 1970, MHz) of each sample of the clock that the driver took after that time."""

        def ask(gpu: Any) -> tuple[tuple[int, int], ...]:
            _, samples = pynvml.nvmlDeviceGetSamples(gpu, pynvml.NVML_PROCESSOR_CLK_SAMPLES, since_microseconds)
            found = ((int(sample.timeStamp), int(sample.sampleValue.uiVal)) for sample in samples)
            # A driver that keeps no samples of the clock may answer with one of 0 MHz (H200, driver 580).
            return tuple((moment, clock) for moment, clock in found if clock)

        return self._ask_gpu(ask) or ()

    def _ask_gpu(self, question: Callable[[Any], T]) -> T | None:
        return None if self.is_slice else _ask(lambda: question(self._handle))


def _ask(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except NvmlError:
        return None

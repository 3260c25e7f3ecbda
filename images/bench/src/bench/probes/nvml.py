"""Reads one device through NVIDIA's management library, NVML. What cannot be read is None.

A device may not support a query, a driver may not know it yet, a container may not be allowed to make it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import pynvml

from bench.schema import ForeignProcess, Gpu, GpuUse

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
        gpu = _ask(pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle) if self.is_slice else None
        self._whole = handle if gpu is None else gpu
        """The whole GPU of a slice, where it can be had."""

    @property
    def memory_total_bytes(self) -> int:
        return int(pynvml.nvmlDeviceGetMemoryInfo(self._handle).total)

    def read_compute_capability(self) -> str | None:
        capability = _ask(pynvml.nvmlDeviceGetCudaComputeCapability, self._whole)
        return None if capability is None else "{}.{}".format(*capability)

    def describe(self, cuda_version: str | None, cudnn_version: str | None) -> Gpu:
        """Return what the device is; link and memory checks of a slice are its whole GPU's."""
        is_correcting = _ask(pynvml.nvmlDeviceGetCurrentEccMode, self._whole)
        return Gpu(
            name=self.name,
            uuid=self.uuid,
            driver_version=str(pynvml.nvmlSystemGetDriverVersion()),
            memory_total_bytes=self.memory_total_bytes,
            compute_capability=self.read_compute_capability(),
            cuda_version=cuda_version,
            cudnn_version=cudnn_version,
            # `1g.5gb` of `NVIDIA A100-SXM4-40GB MIG 1g.5gb`
            mig_profile=self.name.rpartition(" MIG ")[2] if self.is_slice else None,
            # It costs bandwidth on memory without spare bits (GDDR).
            ecc_enabled=None if is_correcting is None else bool(is_correcting),
            pcie_generation=_ask(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, self._whole),  # an idle GPU may lower it
            pcie_width=_ask(pynvml.nvmlDeviceGetCurrPcieLinkWidth, self._whole),
            max_pcie_generation=_ask(pynvml.nvmlDeviceGetMaxPcieLinkGeneration, self._whole),
            max_pcie_width=_ask(pynvml.nvmlDeviceGetMaxPcieLinkWidth, self._whole),
            **self._read_power_limits(),
        )

    def read_baseline(self, processes: tuple[ForeignProcess, ...] | None) -> GpuUse:
        """Return what limits the device, before the framework starts, and that these processes use it."""
        clock = pynvml.NVML_CLOCK_SM
        return GpuUse(
            uuid=self.uuid,
            memory_used_before_bytes=self.read_memory_bytes()[0],
            foreign_processes=processes,
            max_sm_clock_mhz=self._ask_gpu(pynvml.nvmlDeviceGetMaxClockInfo, clock),
            application_clock_mhz=self._ask_gpu(pynvml.nvmlDeviceGetApplicationsClock, clock),
            default_application_clock_mhz=self._ask_gpu(pynvml.nvmlDeviceGetDefaultApplicationsClock, clock),
            **self._read_power_limits(),
        )

    def read_memory_bytes(self) -> tuple[int | None, int | None]:
        """Return the memory in use and the free one, the driver's reserve in neither; None before driver 510."""
        memory = _ask(pynvml.nvmlDeviceGetMemoryInfo, self._handle, pynvml.nvmlMemory_v2)
        return (None, None) if memory is None else (int(memory.used), int(memory.free))

    def read_compute_processes(self) -> tuple[ForeignProcess, ...] | None:
        """Return the processes that compute on the device; many containers hide them, and the list is empty.

        NVML keeps the clients of MPS apart from the other processes, on drivers that know of them.
        """
        processes = _ask(pynvml.nvmlDeviceGetComputeRunningProcesses, self._handle)
        if processes is None:
            return None
        # By its version: without one the binding raises no NvmlError where a driver lacks it.
        clients = _ask(pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, self._handle) or ()
        found = {process.pid: process.usedGpuMemory for process in (*clients, *processes)}
        return tuple(ForeignProcess(pid=pid, memory_bytes=num_bytes) for pid, num_bytes in found.items())

    def read_power_watts(self) -> float | None:
        """Return the power: the mean of the last second from Ampere on, of a shorter time before."""
        return self._ask_thousandths(pynvml.nvmlDeviceGetPowerUsage)

    def read_energy_joules(self) -> float | None:
        """Return the joules used since the driver was loaded, updated about every 0.1 s; None for GPUs before Volta."""
        return self._ask_thousandths(pynvml.nvmlDeviceGetTotalEnergyConsumption)

    def read_sm_clock_mhz(self) -> int | None:
        clock: int | None = self._ask_gpu(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM)
        return clock

    def read_sample(self, start: float) -> dict[str, Any]:
        """Return what a sampling pass watches, by its names; `start`: of the pass, by time.perf_counter."""
        joules, seconds = self.read_energy_joules(), perf_counter() - start
        rates = self._ask_gpu(pynvml.nvmlDeviceGetUtilizationRates)
        mask = self._ask_gpu(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        return {
            "seconds": seconds,
            "energy_joules": joules,
            "power_watts": self.read_power_watts(),
            "sm_clock_mhz": self.read_sm_clock_mhz(),
            "temperature_celsius": self._ask_gpu(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU),
            "memory_used_bytes": self.read_memory_bytes()[0],
            # The share of the last sixth of a second to second in which a kernel was running.
            "utilization": None if rates is None else int(rates.gpu) / 100,
            "throttle_reasons": None
            if mask is None
            else tuple(THROTTLE_REASONS[bit] for bit in THROTTLE_REASONS if mask & bit),
        }

    def read_held_seconds(self) -> dict[str, float]:
        """Return for how long each of PERFORMANCE_POLICIES has held the clock down; those that can be read."""
        return {
            PERFORMANCE_POLICIES[field.fieldId]: int(field.value.ullVal) / 1e9
            for field in self._ask_gpu(pynvml.nvmlDeviceGetFieldValues, list(PERFORMANCE_POLICIES)) or ()
            if field.nvmlReturn == pynvml.NVML_SUCCESS and field.valueType in UNSIGNED_LONGS
        }

    def read_clock_samples(self, start: float, seconds: float) -> tuple[int, ...]:
        """Return the driver's own samples of the clock, MHz, from `start` (seconds since 1970) for `seconds`."""
        kind = pynvml.NVML_PROCESSOR_CLK_SAMPLES
        _, samples = self._ask_gpu(pynvml.nvmlDeviceGetSamples, kind, int(start * 1e6)) or (None, ())
        found = ((sample.timeStamp / 1e6, int(sample.sampleValue.uiVal)) for sample in samples)
        # A driver that keeps no samples of the clock may answer with one of 0 MHz (H200, driver 580).
        return tuple(clock for moment, clock in found if clock and start <= moment <= start + seconds)

    def _read_power_limits(self) -> dict[str, Any]:
        return {
            "power_limit_watts": self._ask_thousandths(pynvml.nvmlDeviceGetEnforcedPowerLimit),
            "default_power_limit_watts": self._ask_thousandths(pynvml.nvmlDeviceGetPowerManagementDefaultLimit),
        }

    def _ask_gpu(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return None if self.is_slice else _ask(function, self._handle, *arguments)

    def _ask_thousandths(self, function: Callable[..., Any]) -> float | None:
        value = self._ask_gpu(function)
        return None if value is None else value / 1e3


def _ask(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except NvmlError:
        return None

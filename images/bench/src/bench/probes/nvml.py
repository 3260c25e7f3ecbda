"""Wraps NVIDIA's management library, NVML; the only module that calls it. What cannot be read is None.

A device may not support a query (a MIG slice has no power of its own), a driver may not know it yet, a container may
not be allowed to make it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pynvml

from bench.schema import ForeignProcess

T = TypeVar("T")

NvmlError = pynvml.NVMLError

# NVML's reasons for a clock below the highest, in its own words (nvml.h, nvmlClocksEventReasons).
SOFTWARE_THERMAL = "software thermal slowdown"
HARDWARE_SLOWDOWN = "hardware slowdown"
HARDWARE_THERMAL = "hardware thermal slowdown"
HARDWARE_POWER_BRAKE = "hardware power brake slowdown"
THROTTLE_REASONS = {
    pynvml.nvmlClocksThrottleReasonGpuIdle: "GPU idle",
    pynvml.nvmlClocksThrottleReasonApplicationsClocksSetting: "applications clocks setting",
    pynvml.nvmlClocksThrottleReasonSwPowerCap: "software power cap",
    pynvml.nvmlClocksThrottleReasonHwSlowdown: HARDWARE_SLOWDOWN,
    pynvml.nvmlClocksThrottleReasonSyncBoost: "sync boost",
    pynvml.nvmlClocksThrottleReasonSwThermalSlowdown: SOFTWARE_THERMAL,
    pynvml.nvmlClocksThrottleReasonHwThermalSlowdown: HARDWARE_THERMAL,
    pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown: HARDWARE_POWER_BRAKE,
    pynvml.nvmlClocksThrottleReasonDisplayClockSetting: "display clock setting",
}


@contextmanager
def open_nvml() -> Iterator[None]:
    """Keep NVML open. Raises NvmlError where there is no NVIDIA driver."""
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def find_visible_devices(num_gpus: int) -> "list[Device]":
    """Return the first `num_gpus` devices that CUDA shows to this process, fewer where it shows fewer.

    CUDA_VISIBLE_DEVICES holds indexes in the order of the PCI bus, UUIDs, or their beginnings; unset: every device.
    Raises NvmlError for a device that is not there.
    """
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        entries = [str(index) for index in range(min(num_gpus, pynvml.nvmlDeviceGetCount()))]
    else:
        entries = [entry.strip() for entry in text.split(",") if entry.strip()][:num_gpus]
    return [Device(_find_handle(entry)) for entry in entries]


def _find_handle(entry: str) -> Any:
    if entry.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(entry))
    if entry.startswith("GPU-"):
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            if pynvml.nvmlDeviceGetUUID(handle).startswith(entry):
                return handle
    return pynvml.nvmlDeviceGetHandleByUUID(entry)


def read_driver_version() -> str:
    """Return the version of the driver."""
    return str(pynvml.nvmlSystemGetDriverVersion())


class Device:
    """One GPU or MIG slice. Every `read_` returns None where the value cannot be read."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.name = str(pynvml.nvmlDeviceGetName(handle))
        self.uuid = str(pynvml.nvmlDeviceGetUUID(handle))
        self.memory_total_bytes = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)

    def read_compute_capability(self) -> str | None:
        """Return `7.5` for a T4."""
        return _ask(lambda: "{}.{}".format(*pynvml.nvmlDeviceGetCudaComputeCapability(self._handle)))

    def read_memory_used_bytes(self) -> int | None:
        """Return the memory in use, the driver's reserve not counted; None before driver 510, which adds it in."""
        version = pynvml.nvmlMemory_v2
        return _ask(lambda: int(pynvml.nvmlDeviceGetMemoryInfo(self._handle, version=version).used))

    def read_memory_free_bytes(self) -> int | None:
        """Return the memory that can still be allocated; None before driver 510."""
        version = pynvml.nvmlMemory_v2
        return _ask(lambda: int(pynvml.nvmlDeviceGetMemoryInfo(self._handle, version=version).free))

    def read_compute_processes(self) -> tuple[ForeignProcess, ...] | None:
        """Return the processes that compute on the device; many containers hide them, and the list is empty."""
        processes = _ask(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        if processes is None:
            return None
        return tuple(ForeignProcess(pid=process.pid, memory_bytes=process.usedGpuMemory) for process in processes)

    def read_power_watts(self) -> float | None:
        """Return the power: the mean of the last second from Ampere on, of a shorter time before."""
        return _ask(lambda: pynvml.nvmlDeviceGetPowerUsage(self._handle) / 1e3)

    def read_power_limit_watts(self) -> float | None:
        """Return the limit in force."""
        return _ask(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(self._handle) / 1e3)

    def read_energy_joules(self) -> float | None:
        """Return the energy since the driver was loaded; the counter moves about every 0.1 s. None before Volta."""
        return _ask(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(self._handle) / 1e3)

    def read_sm_clock_mhz(self) -> int | None:
        """Return the clock of the multiprocessors."""
        return _ask(lambda: int(pynvml.nvmlDeviceGetClockInfo(self._handle, pynvml.NVML_CLOCK_SM)))

    def read_max_sm_clock_mhz(self) -> int | None:
        """Return the highest clock of the multiprocessors."""
        return _ask(lambda: int(pynvml.nvmlDeviceGetMaxClockInfo(self._handle, pynvml.NVML_CLOCK_SM)))

    def read_temperature_celsius(self) -> int | None:
        """Return the temperature of the chip."""
        return _ask(lambda: int(pynvml.nvmlDeviceGetTemperature(self._handle, pynvml.NVML_TEMPERATURE_GPU)))

    def read_throttle_reasons(self) -> tuple[str, ...] | None:
        """Return those of THROTTLE_REASONS that hold the clock down now."""
        mask = _ask(lambda: int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle)))
        return None if mask is None else tuple(words for bit, words in THROTTLE_REASONS.items() if mask & bit)


def _ask(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except NvmlError:
        return None

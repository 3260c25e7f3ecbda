"""Reads where a tenant runs: on which machine, by which clock, on which GPU, and whether through MPS."""

import ctypes
import os
from pathlib import Path

from bench.probes.cpu_use import list_own_pids
from bench.probes.cuda_start import LIBRARY
from bench.probes.nvml import NvmlError, open_nvml
from bench.probes.visible_gpus import find_visible_devices
from bench.schema import Device, TenantPlace

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
TIME_NAMESPACE = Path("/proc/self/ns/time")
# CU_DEVICE_ATTRIBUTE_MPS_ENABLED of the driver's cuda.h, from CUDA 12.4 on: "Indicates if contexts created on this
# device will be shared via MPS". A program whose MPS daemon cannot be reached runs on without MPS and says nothing.
MPS_ENABLED_ATTRIBUTE = 133


def read_place(device: Device) -> TenantPlace:
    """Return where this process runs; on a GPU its context must be there already. What cannot be read is None."""
    on_gpu = device == "gpu"
    return TenantPlace(
        boot_id=_read_boot_id(),
        time_namespace=_read_time_namespace(),
        device=_read_uuid() if on_gpu else None,
        pids=tuple(sorted(list_own_pids())),
        is_under_mps=read_mps_state() if on_gpu else None,
    )


def read_mps_state() -> bool | None:
    """Return whether CUDA shares this process's contexts through MPS; None where the driver does not say."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    device, answer = ctypes.c_int(), ctypes.c_int()
    if library.cuInit(0) or library.cuDeviceGet(ctypes.byref(device), 0):
        return None
    if library.cuDeviceGetAttribute(ctypes.byref(answer), MPS_ENABLED_ATTRIBUTE, device):
        return None
    return bool(answer.value)


def _read_boot_id(path: Path = BOOT_ID) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def _read_time_namespace(path: Path = TIME_NAMESPACE) -> str | None:
    try:
        return os.readlink(path)
    except OSError:  # before Linux 5.6
        return None


def _read_uuid() -> str | None:
    try:
        with open_nvml():
            return next((device.uuid for device in find_visible_devices(1)), None)
    except NvmlError:
        return None

"""Finds the devices of a cell in JAX, how arrays lie on them, and the versions of CUDA and cuDNN that they run on."""

import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

from bench.frameworks.interface import DeviceMissingError
from bench.schema import Cell


def find_devices(cell: Cell) -> list[jax.Device]:
    """Return the devices of the cell, `num_gpus` of its kind; DeviceMissingError where there are fewer.

    The first call starts JAX's clients, which make a context on every GPU that they see.
    """
    try:
        devices = [device for device in jax.devices() if device.platform == cell.device]
    except RuntimeError as error:  # of the plugin for CUDA, which is missing or finds no GPU
        reason = str(error).splitlines()[0]
        raise DeviceMissingError(f"JAX {jax.__version__} sees no GPU: {reason}") from error
    if len(devices) < cell.num_gpus:
        raise DeviceMissingError(f"JAX {jax.__version__} sees {len(devices)} GPUs, the cell asks for {cell.num_gpus}")
    return devices[: cell.num_gpus]


def make_shardings(devices: Sequence[jax.Device]) -> tuple[Sharding, Sharding]:
    """Return where variables go, a copy on each device, and where batches go, a share on each."""
    if len(devices) == 1:
        sharding = SingleDeviceSharding(devices[0])
        return sharding, sharding
    mesh = Mesh(np.array(devices), ("batch",))
    return NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("batch"))


def read_cuda_version(platform_version: str) -> str | None:
    """Return the CUDA version that XLA's client states ("... cuda 12090" is 12.9); None for a CPU."""
    match = re.search(r"cuda (\d+)", platform_version)
    return f"{int(match[1]) // 1000}.{int(match[1]) % 1000 // 10}" if match else None


def read_cudnn_version() -> str | None:
    """Return the version of the installed cuDNN, whichever CUDA it is for; None where it came without a package."""
    for package in ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"):
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return None

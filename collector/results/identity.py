"""Decide which results can be compared: ids of everything in an environment that can change a time.

Two repeats with equal `environment_id` may be aggregated; two cells with equal `hardware_id` may be compared across
frameworks. Host names, what identifies a machine, kernels and installed memory are in neither.
"""

import json
from typing import Any

import pandas as pd

from bench.schema import Environment, hash_text

MACHINE_FACTS = (
    "vendor",
    "product",
    "is_virtual",
    "num_physical_cores",
    "num_sockets",
    "num_numa_nodes",
    "threads_per_core",
    "instruction_sets",
)
GPU_FACTS = ("ecc_enabled", "pcie_width", "max_pcie_generation", "max_pcie_width")


def identify_environment(environment: Environment) -> str:
    """Return 8 hex digits of hardware, driver, Python, package versions, settings and image."""
    software = {
        "python_version": environment.python_version,
        "versions": environment.versions,
        "settings": environment.settings,
        "image": environment.image,
        "cuda_version": environment.gpu.cuda_version if environment.gpu else None,
        "cudnn_version": environment.gpu.cudnn_version if environment.gpu else None,
    }
    return _hash_document(describe_hardware(environment) | software)


def identify_hardware(environment: Environment) -> str:
    """Return 8 hex digits of CPU model, cores, quota, threads, governor, machine, GPU model, its link and driver."""
    return _hash_document(describe_hardware(environment))


def describe_hardware(environment: Environment) -> dict[str, Any]:
    """Return what must be equal for two frameworks to be compared on it."""
    return {
        "cpu_model": environment.cpu_model,
        "num_visible_cores": environment.num_visible_cores,
        "cpu_quota_cores": environment.cpu_quota_cores,
        "num_threads": environment.num_threads,
        "cpu_governor": environment.cpu_governor,
        "gpu_name": environment.gpu.name if environment.gpu else None,
        "driver_version": environment.gpu.driver_version if environment.gpu else None,
        **_list_facts(environment),
    }


def _list_facts(environment: Environment) -> dict[str, Any]:
    """Return what else of machine and GPU can change a time, and is known: older results without it keep their ids.

    Power limits are not in it: a lowered one makes the measurement `throttled`, and some machines move theirs all the
    time. Nor is the generation of the PCIe link at the moment, which an idle GPU lowers.
    """
    facts: dict[str, Any] = {}
    if environment.machine is not None:
        facts |= environment.machine.model_dump(include=set(MACHINE_FACTS))
    if environment.gpu is not None:
        facts |= environment.gpu.model_dump(include=set(GPU_FACTS))
    return {name: value for name, value in facts.items() if value not in (None, ())}


def drop_build(version: str | None) -> str | None:
    """Return a version without what names its build: `2.11.0` for `2.11.0+cu128`."""
    return None if pd.isna(version) else str(version).partition("+")[0]


def _hash_document(document: dict[str, Any]) -> str:
    return hash_text(json.dumps(document, sort_keys=True))

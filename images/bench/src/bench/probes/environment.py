"""Records the environment of a repeat: machine, libraries and the switches that change times or precision."""

import os
import platform
import socket
from collections.abc import Mapping
from importlib.metadata import version
from types import MappingProxyType

from bench.frameworks.interface import Framework
from bench.probes import cpu, gpu, host, memory
from bench.probes.machine_identity import read_machine_identity
from bench.schema import Cell, Environment
from bench.worker.compilers import read_compiler_version

# Switches that a user can set from outside and that change times or precision. A set one is recorded with the settings.
TIMING_VARIABLES = (
    "CC",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
    "CXX",
    "DNNL_MAX_CPU_ISA",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "LD_PRELOAD",
    "MALLOC_CONF",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_WAIT_POLICY",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TF_DETERMINISTIC_OPS",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_GPU_ALLOCATOR",
    "TF_GPU_THREAD_MODE",
    "TF_XLA_FLAGS",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "XLA_FLAGS",
)


def read_environment(
    cell: Cell,
    framework: Framework,
    num_threads: int,
    *,
    image: str | None,
    git_revision: str | None,
    node: str | None = None,
    chosen_caches: Mapping[str, str] = MappingProxyType({}),
) -> Environment:
    """Return everything that is known about this process's machine, libraries and switches.

    `node`: the machine's name, where the host name is the container's. `chosen_caches`: variables of compile caches
    that were set from outside.
    """
    on_gpu = cell.device == "gpu"
    return Environment(
        hostname=node or socket.gethostname(),
        kernel=platform.release(),
        python_version=platform.python_version(),
        cpu_model=cpu.read_cpu_model(),
        num_visible_cores=cpu.count_visible_cores(),
        cpu_quota_cores=cpu.read_cpu_quota_cores(),
        num_threads=num_threads,
        cpu_governor=cpu.read_cpu_governor(),
        machine=host.read_machine(),
        identity=read_machine_identity(),
        memory_total_bytes=memory.read_memory_total_bytes(),
        memory_limit_bytes=memory.read_memory_limit_bytes(),
        versions={**framework.versions, "numpy": version("numpy"), **read_compiler_version(cell)},
        settings={**framework.settings, **read_timing_variables(), **chosen_caches},
        gpus=gpu.read_gpus(cell.num_gpus, framework.cuda_version, framework.cudnn_version) if on_gpu else (),
        image=image,
        git_revision=git_revision,
    )


def read_timing_variables() -> dict[str, str]:
    """Return those of TIMING_VARIABLES that are set."""
    return {name: os.environ[name] for name in TIMING_VARIABLES if name in os.environ}

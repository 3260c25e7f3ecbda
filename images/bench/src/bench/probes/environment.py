"""Where a repeat runs: a set-up framework in, an Environment record out."""

import platform
import socket
from importlib.metadata import version

from bench.frameworks.interface import Framework
from bench.probes import cpu, gpu, memory
from bench.schema import Cell, Environment


def read_environment(
    cell: Cell, framework: Framework, num_threads: int, *, image: str | None, git_revision: str | None
) -> Environment:
    """Return everything that is known about this process's machine, libraries and switches."""
    on_gpu = cell.device == "gpu"
    return Environment(
        hostname=socket.gethostname(),
        kernel=platform.release(),
        python_version=platform.python_version(),
        cpu_model=cpu.read_cpu_model(),
        num_visible_cores=cpu.count_visible_cores(),
        cpu_quota_cores=cpu.read_cpu_quota_cores(),
        num_threads=num_threads,
        cpu_governor=cpu.read_cpu_governor(),
        memory_total_bytes=memory.read_memory_total_bytes(),
        versions={**framework.versions, "numpy": version("numpy")},
        settings=framework.settings,
        gpu=gpu.read_gpu(framework.cuda_version, framework.cudnn_version) if on_gpu else None,
        image=image,
        git_revision=git_revision,
    )

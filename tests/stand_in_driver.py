"""Compiles stand-ins for NVIDIA's driver: NVML as of a machine with one T4, and CUDA that can run nothing."""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "gpu_driver"
LIBRARIES = {"libnvidia-ml.so.1": SOURCES / "nvml.c", "libcuda.so.1": SOURCES / "cuda.c"}
"""The libraries by the names under which programs load them."""
CARD_VARIABLE, CUDA_VARIABLE = "STAND_IN_CARD", "STAND_IN_CUDA"
"""The state of the card, one of those in nvml.c; the code with which CUDA's first call returns, 0 if it is not set."""
CARD_NAME, CARD_UUID = "Tesla T4", "GPU-0f0e0d0c-7474-4444-8888-000000000004"


def compile_driver(folder: Path) -> Path:
    """Compile LIBRARIES into `folder`, which any user may read then, and return it; skip the test without gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc to compile the stand-in for NVIDIA's driver with: apt-get install gcc libc6-dev")
    folder.mkdir(parents=True)
    for name, source in LIBRARIES.items():
        options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{name}"]
        subprocess.run([gcc, *options, "-o", str(folder / name), str(source)], check=True)
    folder.chmod(0o755)
    return folder

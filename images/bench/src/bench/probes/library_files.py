"""Reads the files of cuDNN and cuBLAS once, so that a framework does not time its algorithms while they are loaded.

Frameworks try several algorithms for each convolution in the first step and keep the fastest. The kernels are loaded
from these libraries at their first launch, within the trial. From a disk that has never been read they come slowly: the
first TensorFlow process on a fresh machine chose another algorithm for the weights' gradients and stayed 13 to 15 %
slower than all later ones (Conv6, training at 224 px: H100 and H200, 2026-11-21 and 22), and was as fast as they once
the libraries had been read before (H200, 2026-11-22).
"""

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

NAMES = ("libcudnn*.so*", "libcublas*.so*")
SYSTEM_FOLDERS = (Path("/usr/local/cuda/lib64"), Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib/aarch64-linux-gnu"))
CHUNK_BYTES = 16 * 2**20


def read_library_files() -> int:
    """Read every file of NAMES into the page cache; return the bytes read."""
    spec = find_spec("nvidia")
    packages = (spec.submodule_search_locations or []) if spec else []
    wheels = [folder for package in packages for folder in Path(package).glob("*/lib")]
    named = [Path(entry) for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    folders = [*wheels, *named, *SYSTEM_FOLDERS]
    num_bytes = 0
    for path in {path.resolve() for folder in folders for name in NAMES for path in folder.glob(name)}:
        # The framework says so if it needs a file that cannot be read.
        with suppress(OSError), path.open("rb", buffering=0) as file:
            while chunk := file.read(CHUNK_BYTES):
                num_bytes += len(chunk)
    return num_bytes

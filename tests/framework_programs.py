"""How tests start programs in the environment of an image, and read what these print."""

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

Answers = dict[str, Any]

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "tests" / "unit" / "bench" / "programs"
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "images" / "bench" / "src", ROOT / "tests"))),
    # These programs compile far longer than they compute: 82 instead of 140 s of CPU without XLA's costly passes.
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    # Several checks compile the same step: 38 instead of 46 s of CPU.
    "JAX_COMPILATION_CACHE_DIR": tempfile.mkdtemp(prefix="compiled-"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    # What JAX sets by it, for TensorFlow: 63 instead of 96 s of CPU.
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
    # Threads that wait for one another burn their core: 20 instead of 170 s of CPU for the mirrors in PyTorch.
    "OMP_NUM_THREADS": "1",
    # No pool of processes that compile, each of which imports PyTorch: 81 instead of 89 s of CPU.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}
atexit.register(shutil.rmtree, ENVIRONMENT["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)


def ask(interpreter: Path, program: str, *arguments: str, given: Any = None) -> Any:
    """Return the JSON value on the last line that a program prints, which finds `given` as JSON at its stdin."""
    command = [str(interpreter), str(PROGRAMS / program), *arguments]
    # Files: pipes would stay open as long as a worker that outlives the program.
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        done = subprocess.run(
            command, env=os.environ | ENVIRONMENT, input=json.dumps(given), stdout=out, stderr=err, text=True
        )
        out.seek(0)
        err.seek(0)
        printed, last_words = out.read(), err.read()[-3000:]
    assert done.returncode == 0, last_words
    return json.loads(printed.splitlines()[-1])


def start_program(interpreter: Path, program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a program of PROGRAMS with the package and the tests on its path."""
    command = [str(interpreter), str(PROGRAMS / program), *arguments]
    environment = os.environ | ENVIRONMENT
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish_program(process: subprocess.Popen[str]) -> str:
    """Return what a program printed; fail with its last words where it failed."""
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr[-3000:]
    return stdout

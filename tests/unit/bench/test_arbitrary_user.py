"""A container whose user the cluster chose, as OpenShift does: no entry in /etc/passwd, group 0."""

import shlex
import subprocess
from pathlib import Path

import pytest

from bench.schema import Cell, Framework
from bench_process import get_result, run_bench
from factories import make_cell

# The first user of the range of a namespace, as in the message of an SCC: "must be in the ranges: [1000660000, ...]".
USER = 1_000_660_000
MAP_USER = ("unshare", "--user", f"--map-user={USER}", "--map-group=0")
# The smallest thing that each framework compiles, without the seconds in which the CPU's peak is measured.
PRODUCT = {"model": "matmul", "phase": "infer", "input_size": 64, "num_classes": None, "batch_size": 1}
PRODUCT |= {"sampling_seconds": 0.0}
CELLS = {
    "pytorch": make_cell(mode="compiled", **PRODUCT),
    "tensorflow": make_cell(framework="tensorflow", mode="graph", **PRODUCT),
    "jax": make_cell(framework="jax", mode="compiled", **PRODUCT),
}


@pytest.fixture
def as_that_user(tmp_path: Path) -> Path:
    """A folder for wrappers that start a program as that user, in a user namespace."""
    try:
        done = subprocess.run([*MAP_USER, "id", "-u"], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if done.stdout.strip() != str(USER):
        pytest.skip(f"no user namespace can be made here: {done.stderr.strip()}")
    return tmp_path


@pytest.mark.parametrize("cell", CELLS.values(), ids=list(CELLS))
def test_a_cell_is_measured_as_a_user_that_nobody_knows(
    as_that_user: Path, interpreters: dict[Framework, Path], cell: Cell
) -> None:
    wrapper = as_that_user / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.join([*MAP_USER, str(interpreters[cell.framework])])} "$@"\n')
    wrapper.chmod(0o755)
    temporary = as_that_user / "tmp"
    temporary.mkdir()

    ending = run_bench(wrapper, cell, as_that_user, HOME=str(temporary), TMPDIR=str(temporary))

    result = get_result(ending)
    assert (ending.exit_code, result.status, result.error) == (0, "ok", None)

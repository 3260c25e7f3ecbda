"""`python -m bench` where something is missing or wrong: its record or its one line, and its exit code."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.exit_codes import EXIT_INTERNAL_ERROR, EXIT_NODE_FAULT, EXIT_USER_ERROR
from bench.registry import FRAMEWORKS
from bench.schema import Cell, Framework
from bench.worker import main as program
from bench.worker.request import Order
from bench.worker.shutdown import SigtermListener
from bench_process import get_result, run_bench
from factories import make_cell

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_missing_framework_is_a_record_of_its_own_kind(tmp_path: Path, framework: Framework) -> None:
    # From the folder whose sub-folders have the frameworks' names: they must not pass for the frameworks.
    cell = make_cell(framework=framework, mode=FRAMEWORKS[framework].modes[0])
    ending = run_bench(sys.executable, cell, tmp_path, cwd=ROOT / "images")
    result = get_result(ending)
    assert result.error is not None
    assert (ending.exit_code, result.status, result.error.kind) == (1, "failed", "missing-framework")
    assert "No module named" in result.error.message
    assert f"failed: {result.error.message}" in ending.output
    assert "Traceback" in result.error.stderr_tail
    assert result.phases.import_seconds is None


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_cell_for_a_gpu_fails_where_none_is_visible(
    tmp_path: Path, interpreters: dict[Framework, Path], framework: Framework
) -> None:
    cell = make_cell(framework=framework, mode=FRAMEWORKS[framework].modes[0], device="gpu")
    ending = run_bench(
        interpreters[framework], cell, tmp_path, CUDA_VISIBLE_DEVICES="", BENCH_PARENT_PID=str(os.getpid())
    )
    result = get_result(ending)
    assert result.error is not None
    assert (ending.exit_code, result.status, result.error.kind) == (1, "failed", "exception")
    assert result.error.message.startswith("DeviceMissingError: ")
    assert "sees 0 GPUs" in result.error.message


def test_a_container_without_a_gpu_says_so_before_anything_is_imported(tmp_path: Path) -> None:
    ending = run_bench(sys.executable, make_cell(device="gpu"), tmp_path, CUDA_VISIBLE_DEVICES="")
    assert (ending.exit_code, ending.result) == (EXIT_NODE_FAULT, None)
    assert "error: fault of this machine, not of the cell: device: no NVIDIA GPU can be seen (" in ending.output


# What PyTorch says where the driver does not start: torch/csrc/cuda/Module.cpp.
NOT_READY = "Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"


@pytest.mark.parametrize(("is_container", "exit_code"), [(True, EXIT_NODE_FAULT), (False, 1)])
def test_a_gpu_that_cuda_cannot_start_is_the_machines_fault_in_a_container_and_a_record_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    *,
    is_container: bool,
    exit_code: int,
) -> None:
    def fail(cell: Cell, num_threads: int) -> None:
        raise RuntimeError(NOT_READY)

    monkeypatch.setattr("bench.worker.attempt.load_framework", fail)
    order = Order(cell=make_cell(), run_id="r", repeat=1, attempt="a", store_url=f"file://{tmp_path}")
    for name, value in order.to_variables().items():
        monkeypatch.setenv(name, value)

    if not is_container:
        monkeypatch.setenv("BENCH_PARENT_PID", str(os.getppid()))
        monkeypatch.setattr("bench.worker.main.die_with_parent", lambda pid: None)
    found = program.main(SigtermListener() if is_container else None)

    assert found == exit_code
    assert len(list(tmp_path.glob("runs/r/results/*/*.json"))) == (not is_container)
    assert NOT_READY in capsys.readouterr().err.splitlines()[-1]


def test_a_container_without_the_compiler_of_a_cell_says_so_before_anything_is_imported(tmp_path: Path) -> None:
    ending = run_bench(sys.executable, make_cell(mode="compiled"), tmp_path, PATH=str(tmp_path))
    assert (ending.exit_code, ending.result) == (EXIT_USER_ERROR, None)
    assert "cannot be measured here: compiler: compiled PyTorch needs a C++ compiler" in ending.output


def limit_address_space(num_bytes: int) -> Callable[[], None]:
    """Return what makes a process unable to hold more than `num_bytes`, so that no test fills the machine."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (num_bytes, num_bytes))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_batch_that_fits_nowhere_is_out_of_memory(
    tmp_path: Path, interpreters: dict[Framework, Path], framework: Framework
) -> None:
    cell = make_cell(framework=framework, mode=FRAMEWORKS[framework].modes[0], batch_size=10**9)
    ending = run_bench(interpreters[framework], cell, tmp_path, preexec=limit_address_space(30 * 10**9))
    result = get_result(ending)
    assert result.error is not None
    assert (ending.exit_code, result.status, result.error.kind) == (1, "oom", "out-of-memory")
    # 10^9 images of 3 x 32 x 32 float32: 12.288e12 bytes, 11.2 TiB.
    assert "Unable to allocate 11.2 TiB" in result.error.message
    assert result.error.bytes_requested == round(11.2 * 2**40)
    assert (result.samples, result.phases.build_seconds) == (None, None)
    assert result.environment is not None


def test_activations_that_do_not_fit_are_out_of_memory(tmp_path: Path, interpreters: dict[Framework, Path]) -> None:
    cell = make_cell(batch_size=20_000)
    result = get_result(run_bench(interpreters["pytorch"], cell, tmp_path, preexec=limit_address_space(8 * 10**9)))
    assert result.error is not None
    assert (result.status, result.error.kind) == ("oom", "out-of-memory")
    # The first convolution's output: 20,000 x 64 x 32 x 32 float32.
    assert result.error.bytes_requested == 5_242_880_000
    assert result.phases.build_seconds is not None
    assert result.phases.first_step_seconds is None


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"BENCH_CELL": "{}"}, "error: BENCH_CELL: no Cell: model: Field required"),
        ({"BENCH_REPEAT": "0"}, "error: BENCH_REPEAT: '0' is no whole number"),
        ({"BENCH_RUN_ID": "../x"}, "error: BENCH_RUN_ID: '../x' is no name"),
        ({"BENCH_STORE": ""}, "error: BENCH_STORE: not set"),
        ({"BENCH_STORE": "ftp://x"}, "error: store: 'ftp://' is unknown"),
        ({"BENCH_STORE": f"file://{__file__}/x"}, "error: store file://"),
    ],
)
def test_a_wrong_order_ends_with_one_line_and_exit_code_2(
    tmp_path: Path, variables: dict[str, Any], message: str
) -> None:
    ending = run_bench(sys.executable, make_cell(), tmp_path, **variables)
    assert (ending.exit_code, ending.result) == (2, None)
    assert ending.output.startswith(message)
    assert len(ending.output.splitlines()) == 1


def test_the_store_is_tried_before_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order = Order(cell=make_cell(), run_id="r", repeat=1, attempt="a", store_url="file:///sys/kernel")  # never writable
    for name, value in order.to_variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("bench.worker.main.Attempt", lambda order: pytest.fail("the work was begun"))
    assert program.main(None) == 2
    assert capsys.readouterr().err.startswith("error: store file:///sys/kernel: ")


def test_an_error_of_the_package_does_not_end_with_the_exit_code_that_promises_a_record(tmp_path: Path) -> None:
    program = (
        "import runpy, bench.worker.attempt\n"
        "def fail(attempt): raise RuntimeError('an internal error')\n"
        "bench.worker.attempt.Attempt.run = fail\n"
        "runpy.run_module('bench', run_name='__main__')"
    )
    order = Order(cell=make_cell(), run_id="r", repeat=1, attempt="a", store_url=f"file://{tmp_path}/results")
    variables = {**os.environ, **order.to_variables(), "PYTHONPATH": str(ROOT / "images" / "bench" / "src")}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (EXIT_INTERNAL_ERROR, "RuntimeError: an internal error")

"""`python -m bench` in a process of its own, as a container runs it: how it ends, also as one of several tenants."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import (
    EXIT_INTERNAL_ERROR,
    EXIT_NODE_FAULT,
    EXIT_NOT_OK,
    EXIT_PREEMPTED,
    EXIT_TRY_AGAIN,
    EXIT_USER_ERROR,
)
from bench.registry import FRAMEWORKS
from bench.schema import Cell, Framework, Result, TenantRecord
from bench.store import Store
from bench.tenants.meeting import Meeting
from bench.worker import main as program
from bench.worker.request import Order
from bench.worker.shutdown import SigtermListener
from bench_process import Ending, get_result, run_bench, start_bench
from factories import make_cell, present
from workspace import HANG_GUARD_SECONDS

ROOT = Path(__file__).parents[4]


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


@pytest.mark.parametrize(
    ("cell", "variables", "exit_code", "message"),
    [
        ({"device": "gpu"}, {"CUDA_VISIBLE_DEVICES": ""}, EXIT_NODE_FAULT, "fault of this machine, not of the cell: "),
        ({"mode": "compiled"}, {"PATH": "/none"}, EXIT_USER_ERROR, "conv6-pytorch-cpu-train-fp32-compiled-b64 cannot"),
        ({}, {"BENCH_CELL": "{}"}, EXIT_USER_ERROR, "BENCH_CELL: no Cell: model: Field required"),
        ({}, {"BENCH_STORE": "ftp://x"}, EXIT_USER_ERROR, "store: 'ftp://' is unknown"),
        ({}, {"BENCH_STORE": f"file://{__file__}/x"}, EXIT_USER_ERROR, "store file://"),
    ],
)
def test_what_cannot_be_measured_here_ends_in_one_line_before_anything_is_imported(
    tmp_path: Path, cell: dict[str, Any], variables: dict[str, Any], exit_code: int, message: str
) -> None:
    ending = run_bench(sys.executable, make_cell(**cell), tmp_path, **variables)
    assert (ending.exit_code, ending.result) == (exit_code, None)
    assert ending.output.startswith(f"error: {message}")
    assert len(ending.output.splitlines()) == 1


def limit_address_space(num_bytes: int) -> Callable[[], None]:
    """Return what makes a process unable to hold more than `num_bytes`, so that no test fills the machine."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (num_bytes, num_bytes))


def test_a_batch_that_fits_nowhere_is_out_of_memory(tmp_path: Path, interpreters: dict[Framework, Path]) -> None:
    """NumPy draws it for every framework."""
    cell = make_cell(batch_size=10**9)
    ending = run_bench(interpreters["pytorch"], cell, tmp_path, preexec=limit_address_space(30 * 10**9))
    result = get_result(ending)
    assert result.error is not None
    assert (ending.exit_code, result.status, result.error.kind) == (1, "oom", "out-of-memory")
    # 10^9 images of 3 x 32 x 32 float32: 12.288e12 bytes, 11.2 TiB.
    assert "Unable to allocate 11.2 TiB" in result.error.message
    assert (result.samples, result.phases.build_seconds) == (None, None)
    assert result.environment is not None


def test_activations_that_do_not_fit_are_out_of_memory(tmp_path: Path, interpreters: dict[Framework, Path]) -> None:
    cell = make_cell(batch_size=20_000)
    result = get_result(run_bench(interpreters["pytorch"], cell, tmp_path, preexec=limit_address_space(8 * 10**9)))
    assert result.error is not None
    assert (result.status, result.error.kind) == ("oom", "out-of-memory")
    # The first convolution's output: 20,000 x 64 x 32 x 32 float32.
    assert "5242880000 bytes" in result.error.message
    assert result.phases.build_seconds is not None
    assert result.phases.first_step_seconds is None


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


CELL = make_cell(tenants=2)


def run_tenant(folder: Path, tenant: int) -> Ending:
    """Run a tenant by the tool's own Python, which has no PyTorch."""
    return run_bench(sys.executable, CELL, folder, BENCH_TENANT=str(tenant))


def open_meeting(folder: Path, tenant: int) -> Meeting:
    """Return the meeting of the tenants of `run_tenant`."""
    url = f"file://{folder}/store"
    order = Order(cell=CELL, run_id="test-1", repeat=2, attempt="a1", store_url=url, tenant=tenant, tenant_group="g")
    return Meeting(store=Store.open(url), order=order)


def test_a_tenant_beside_the_first_leaves_its_record_where_all_meet(tmp_path: Path) -> None:
    meeting = open_meeting(tmp_path, 0)
    meeting.call()
    ending = run_tenant(tmp_path, 1)
    assert (ending.exit_code, ending.result) == (1, None)
    record = TenantRecord.model_validate_json(meeting.store.get(meeting.find_key("end", 1)))
    assert (record.tenant, record.status, present(record.error).kind) == (1, "failed", "missing-framework")


def test_tenants_do_not_wait_for_a_first_one_whose_container_has_no_gpu(tmp_path: Path) -> None:
    cell = make_cell(device="gpu", tenants=2)
    first = run_bench(sys.executable, cell, tmp_path, BENCH_TENANT="0", CUDA_VISIBLE_DEVICES="")
    second = run_bench(sys.executable, cell, tmp_path, BENCH_TENANT="1", CUDA_VISIBLE_DEVICES="")
    assert (first.exit_code, second.exit_code) == (EXIT_NODE_FAULT, EXIT_TRY_AGAIN)
    assert "no NVIDIA GPU can be seen" in first.output
    assert "error: group g has met without this process" in second.output
    assert (first.result, second.result) == (None, None)


# So long that it is never over: ended it must be. Its steps begin at once, without the measurement of the CPU's peak.
ENDLESS = make_cell(
    batch_size=2, num_warmup_steps=1, max_warmup_seconds=0.1, num_steps=10**9, min_seconds=0.0, sampling_seconds=0.0
)

# `python -m bench` that says when it has measured two steps.
TELLS_OF_STEPS = """
import runpy
from bench.measure import harness

class Steps(list):
    def append(self, seconds):
        super().append(seconds)
        if len(self) == 2:
            print("two steps", flush=True)

class TellingRecorder(harness.StepRecorder):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.steps = Steps()

harness.StepRecorder = TellingRecorder
runpy.run_module("bench", run_name="__main__", alter_sys=True)
"""


def read_record(folder: Path, kind: str) -> Result:
    (path,) = (folder / "store" / "runs" / "test-1" / kind).glob("*/*.json")
    return Result.model_validate_json(path.read_bytes())


def test_sigterm_leaves_what_was_measured_beside_the_results(
    tmp_path: Path, interpreters: dict[Framework, Path]
) -> None:
    process = start_bench(interpreters["pytorch"], ENDLESS, tmp_path, "-c", TELLS_OF_STEPS)
    assert any(line == "two steps\n" for line in present(process.stdout))
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=HANG_GUARD_SECONDS)

    assert process.returncode == EXIT_PREEMPTED, output
    result = read_record(tmp_path, "interrupted")
    assert (result.status, result.written_by) == ("preempted", "bench")
    assert present(result.error).signal == "SIGTERM"
    assert result.phases.build_seconds is not None
    assert len(present(result.samples).step_seconds) > 1
    assert not list((tmp_path / "store" / "runs" / "test-1").glob("results/*/*.json"))


def test_the_end_of_the_time_is_a_terminal_record(tmp_path: Path, interpreters: dict[Framework, Path]) -> None:
    process = start_bench(interpreters["pytorch"], ENDLESS, tmp_path, BENCH_TIMEOUT_SECONDS="1.5")
    output, _ = process.communicate(timeout=HANG_GUARD_SECONDS)

    assert process.returncode == EXIT_NOT_OK, output
    result = read_record(tmp_path, "results")
    assert result.status == "timeout"
    assert present(result.error).message == "still running after timeout_seconds = 1.5"

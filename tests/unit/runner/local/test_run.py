"""runner.local.run: which run is begun or resumed, what of it is measured, until when; stand-ins for bench."""

import errno
import io
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench.errors import UserError
from bench.registry import Device
from bench.schema import Framework, Run, read_result
from bench.store import Store, results_prefix, run_key
from bench.worker.request import read_timing_variables
from factories import START, make_cell, make_result, make_run, present
from fake_interpreters import make_interpreter, make_measuring_interpreter, read_log
from runner.local.process import hold_host_lock
from runner.local.run import LocalCaps, LocalRun, parse_interpreters
from runner.matrix import order_repeats
from runner.processes import end_like_interrupt
from runner.runs import NO_RETRIES

MATRIX = """
name: quick
axes:
  framework: [pytorch, tensorflow]
defaults: {model: conv6, device: cpu, phase: train, batch_size: 4, num_steps: 1, repeats: 2, timeout_seconds: 60}
"""
FRAMEWORKS: tuple[Framework, ...] = ("pytorch", "tensorflow")


@pytest.fixture
def setup(tmp_path: Path, lock_folder: Path, monkeypatch: pytest.MonkeyPatch) -> "Setup":
    for name in read_timing_variables(os.environ):  # a line would name them
        monkeypatch.delenv(name)
    return Setup(tmp_path)


class Setup:
    """A matrix of two cells with two repeats each, a store, and an interpreter that measures in no time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store.open(f"file://{folder}/store")
        self.log = folder / "log"
        self.matrix = folder / "quick.yaml"
        self.matrix.write_text(MATRIX)
        self.python = make_measuring_interpreter(folder / "python", log=self.log)

    def make(self, **overrides: Any) -> LocalRun:
        fields: dict[str, Any] = {
            "matrix": str(self.matrix),
            "store": self.store,
            "run_id": None,
            "start_new": False,
            "retries": NO_RETRIES,
            "interpreters": dict.fromkeys(FRAMEWORKS, self.python),
        }
        return LocalRun(**(fields | overrides))

    def measure(self, **overrides: Any) -> tuple[Run, str]:
        """Choose and measure a run; returns it and what was printed."""
        local_run, printed = self.make(**overrides), io.StringIO()
        run = local_run.choose_run()
        local_run.measure(run, Console(file=printed, width=200, markup=False), resume_command="COMMAND")
        return run, printed.getvalue()


def count_results(store: Store, run: Run) -> int:
    return len(list(store.list_keys(results_prefix(run.run_id))))


def test_variables_that_are_held_back_are_named_unless_the_matrix_sets_them(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")
    monkeypatch.setenv("LD_PRELOAD", "")
    setup.matrix.write_text(MATRIX + 'environment: {LD_PRELOAD: ""}\n')
    run, printed = setup.measure()
    assert run.environment == {"LD_PRELOAD": ""}
    assert "not set for what is measured: OMP_THREAD_LIMIT; a matrix sets" in printed
    assert setup.make(matrix=str(setup.matrix)).choose_run().plan_id == run.plan_id
    setup.matrix.write_text(MATRIX)
    assert setup.make().choose_run().plan_id != run.plan_id


def test_a_run_is_planned_without_the_right_to_write_and_measures_nothing_without_it(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", f"{setup.folder}/store/runs/x")

    monkeypatch.setattr("bench.store.directory.Directory.check", refuse)
    run = setup.make().choose_run()
    with pytest.raises(UserError, match="no permission to use .*/store/runs; change its"):
        setup.make().measure(run, Console(file=io.StringIO()), resume_command="COMMAND")
    assert read_log(setup.log) == []


def test_a_new_run_measures_every_repeat_once_in_turns(setup: Setup) -> None:
    run, printed = setup.measure()

    assert read_log(setup.log) == [repeat.key for repeat in order_repeats(run.cells, run.order_seed)]
    assert [number for _, number in read_log(setup.log)] == [1, 1, 2, 2]
    assert len(set(read_log(setup.log))) == 4
    assert Run.model_validate_json(setup.store.get(run_key(run.run_id))) == run
    assert count_results(setup.store, run) == 4
    assert printed.splitlines()[:3] == [
        f"run {run.run_id}",
        "plan: 2 cells, 4 repeats in all; 0 there, 4 to measure",
        "to resume after an interruption: COMMAND",
    ]
    assert "repeat 2/2 " in printed.splitlines()[-1]


def test_a_store_that_goes_away_ends_the_run_before_the_next_repeat(setup: Setup) -> None:
    away = setup.folder / "away"
    leaves = f'if test "$(wc -l < {setup.log})" = 2; then mv {setup.folder}/store {away}; fi'
    python = make_measuring_interpreter(setup.folder / "leaves", log=setup.log, after=leaves)
    with pytest.raises(UserError, match=r"run\.json is gone while its run is measured: .* give the same command again"):
        setup.measure(interpreters=dict.fromkeys(FRAMEWORKS, python))
    assert len(read_log(setup.log)) == 2

    shutil.rmtree(setup.folder / "store")  # a record of the second repeat, which was not found any more
    away.rename(setup.folder / "store")
    run, printed = setup.measure()

    assert f"run {run.run_id} is resumed" in printed
    assert count_results(setup.store, run) == 4


def test_a_finished_run_that_is_named_is_left_as_it_is_even_while_another_one_measures(setup: Setup) -> None:
    run, _ = setup.measure()

    with hold_host_lock("other-run"):
        again, printed = setup.measure(run_id=run.run_id)

    assert run == again
    assert printed == f"run {run.run_id}: all 4 repeats are there, nothing is measured\n"
    assert len(read_log(setup.log)) == 4


def test_the_name_of_a_run_of_another_plan_is_refused_before_anything_is_measured(setup: Setup) -> None:
    setup.measure(run_id="mine")
    setup.matrix.write_text(MATRIX.replace("repeats: 2", "repeats: 3"))

    with pytest.raises(UserError, match=r"quick\.yaml: run mine was planned with other cells or repeats"):
        setup.measure(run_id="mine")

    assert len(read_log(setup.log)) == 4


def test_a_result_that_a_dead_runners_process_wrote_at_the_last_moment_counts(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stored after this runner has looked what is missing, but before the lock is free."""
    run, _ = setup.measure(run_id="mine")
    late, *others = setup.store.list_keys(results_prefix(run.run_id))
    record = setup.store.get(late)
    for key in (late, *others):
        (setup.folder / "store" / key).unlink()

    @contextmanager
    def wait_for_lock(run_id: str) -> Iterator[int]:
        with hold_host_lock(run_id) as lock:
            setup.store.put(late, record)
            yield lock

    monkeypatch.setattr("runner.local.run.hold_host_lock", wait_for_lock)
    setup.measure(run_id="mine")

    assert len(read_log(setup.log)[4:]) == 3
    assert setup.store.get(late) == record


def test_cells_for_a_gpu_are_left_out_and_it_is_said(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.local.run.find_gpu", lambda: None)
    setup.matrix.write_text(MATRIX.replace("device: cpu, ", "").replace("axes:", "axes:\n  device: [cpu, gpu]"))

    run, printed = setup.measure()

    assert len(run.left_out) == 2
    assert "left out: 2 cells: no NVIDIA GPU is visible on this machine\n" in printed
    assert len(read_log(setup.log)) == 4


def test_cells_whose_interpreter_lacks_a_module_are_left_out_once_and_the_others_run(setup: Setup) -> None:
    """The tool's own Python, which has no PyTorch."""
    run, printed = setup.measure(interpreters={"pytorch": Path(sys.executable), "tensorflow": setup.python})

    (reason,) = (line for line in printed.splitlines() if line.startswith("left out"))
    planned = setup.make(interpreters={"pytorch": Path(sys.executable), "tensorflow": setup.python})
    assert planned.describe_installation(run) == reason
    assert reason == (
        f"left out: 1 pytorch cell: {sys.executable} has no torch, torchvision; install it with "
        f"`{sys.executable} -m pip install torch torchvision` and give the same command again, which measures what is "
        "missing"
    )
    keys = list(setup.store.list_keys(results_prefix(run.run_id)))
    assert [read_result(setup.store.get(key)).cell.framework for key in keys] == ["tensorflow"] * 2
    again, printed = setup.measure()
    assert again == run
    assert len(read_log(setup.log)) == 4


def test_a_run_of_which_no_cell_can_be_measured_is_not_begun(setup: Setup) -> None:
    with pytest.raises(
        UserError, match=r"pytorch cell: .* has no torch, torchvision; .*; 1 tensorflow cell: .* has no keras, tens"
    ):
        setup.measure(interpreters=dict.fromkeys(FRAMEWORKS, Path(sys.executable)))
    assert setup.store.list_run_ids() == []


def test_interpreters_are_read_for_all_frameworks_or_for_one(tmp_path: Path) -> None:
    one, two = (make_interpreter(tmp_path / name, "") for name in ("one", "two"))

    assert dict.fromkeys(FRAMEWORKS, one) == parse_interpreters([str(one)], FRAMEWORKS)
    assert parse_interpreters([f"tensorflow={two}"], FRAMEWORKS) == {"tensorflow": two}
    assert parse_interpreters([str(one), f"tensorflow={two}"], FRAMEWORKS) == {"pytorch": one, "tensorflow": two}
    assert parse_interpreters([], FRAMEWORKS) == {}


def test_a_run_under_nohup_outlives_its_terminal() -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with end_like_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, previous)


ON_CPU, ON_GPU = make_cell(), make_cell(device="gpu")
RUN = make_run([ON_CPU, ON_GPU])
PRICES: dict[Device, float] = {"cpu": 3.6, "gpu": 36.0}
"""3.6 an hour is 0.001 a second."""


def begin_caps(caps: LocalCaps, **seconds: float) -> LocalCaps:
    """Begin with the run of a CPU and a GPU cell, of which a repeat each has taken so long."""
    cells = {"cpu": ON_CPU, "gpu": ON_GPU}
    caps.begin(RUN, {(cells[name].cell_id, 1): spent for name, spent in seconds.items()})
    return caps


@pytest.mark.parametrize(
    ("seconds", "is_over"),
    [(99, False), (100, True), (3600, True), (-86_400, False)],  # the last: begun by a clock ahead
)
def test_no_repeat_begins_after_the_deadline(seconds: float, is_over: bool) -> None:
    now = START + timedelta(seconds=seconds)
    caps = begin_caps(LocalCaps(deadline_seconds=100, now=lambda: now))
    assert caps.explain_end("cpu") == ("the deadline of 100 s has passed" if is_over else None)
    assert present(caps.deadline) - now < timedelta(seconds=200)


@pytest.mark.parametrize(
    ("max_cost", "seconds", "device", "end"),
    [
        (0.8, 400.0, "cpu", None),
        (0.79, 400.0, "cpu", "the run has cost about 0.40 USD; one more repeat would pass --max-cost 0.79"),
        # Nothing is known of GPU cells: one may begin while anything is left.
        (0.79, 400.0, "gpu", None),
        (0.79, 790.0, "gpu", "the run has cost about 0.79 USD, which reaches --max-cost 0.79"),
    ],
)
def test_a_repeat_that_would_pass_the_cap_does_not_begin(
    max_cost: float, seconds: float, device: Device, end: str | None
) -> None:
    assert begin_caps(LocalCaps(max_cost=max_cost, prices=PRICES), cpu=seconds).explain_end(device) == end


def test_what_is_measured_adds_to_the_cost() -> None:
    caps = begin_caps(LocalCaps(max_cost=1.0, prices=PRICES))
    caps.add(make_result(ON_GPU, repeat=2, started_at=START, finished_at=START + timedelta(seconds=60)))
    assert caps.cost == pytest.approx(0.6)
    assert caps.explain_end("gpu") is not None
    assert caps.explain_end("cpu") is None

"""runner.local.executor: however a measuring process ends, one terminal record says how."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.schema import PlannedCell, Result
from bench.store import Store, StoreError, results_prefix
from factories import RUN_ID, make_cell, make_result
from fake_interpreters import make_interpreter, make_measuring_interpreter, read_log
from local_processes import await_death, end_time_when, read_pids
from memory_cgroup import MemoryCgroup
from runner.local.executor import LocalExecutor, Observer
from runner.matrix.plan import Repeat
from workspace import HANG_GUARD_SECONDS

BENCH = Path(__file__).parents[4] / "images" / "bench" / "src"


class Notes(Observer):
    """Writes down what the executor reports."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def start_repeat(self, repeat: Repeat) -> None:
        self.lines.append(f"start {repeat.number}")

    def finish_repeat(self, repeat: Repeat, result: Result, fault: str | None = None) -> None:
        self.lines.append(f"finish {repeat.number} {result.status}" + (f": {fault}" if fault else ""))


def make_repeat(number: int = 1) -> Repeat:
    planned = PlannedCell(cell=make_cell(), repeats=3, timeout_seconds=HANG_GUARD_SECONDS)
    return Repeat(planned=planned, number=number)


@pytest.fixture
def executor(tmp_path: Path) -> LocalExecutor:
    """An executor whose interpreter, `tmp_path / "python"`, the test has yet to make."""
    return LocalExecutor(
        run_id=RUN_ID,
        store=Store.open(f"file://{tmp_path}/store"),
        interpreters=dict.fromkeys(("pytorch", "tensorflow"), tmp_path / "python"),
        lock=0,
        observer=Notes(),
    )


def read_records(executor: LocalExecutor) -> list[Result]:
    """Return every record of the run in the store."""
    keys = executor.store.list_keys(results_prefix(executor.run_id))
    return [Result.model_validate_json(executor.store.get(key)) for key in keys]


@pytest.mark.parametrize(
    ("body", "status", "kind", "exit_code", "signal_name", "message"),
    [
        ("echo why >&2; exit 7", "failed", "exit", 7, None, "ended with exit code 7 and left no result"),
        ("echo why", "failed", "exit", 0, None, "ended with exit code 0 and left no result"),
        ("echo why; kill -SEGV $$", "failed", "killed", None, "SIGSEGV", "ended by SIGSEGV"),
        ("echo why; kill -ABRT $$", "failed", "killed", None, "SIGABRT", "ended by SIGABRT"),
        ("echo why; kill -9 $$", "failed", "killed", None, "SIGKILL", "ended by SIGKILL"),
        ("echo why; kill -40 $$", "failed", "killed", None, "signal 40", "ended by signal 40"),
        ("yes no | head -c 5000000; echo why; exit 1", "failed", "exit", 1, None, "ended with exit code 1"),
    ],
)
def test_a_process_that_dies_leaves_one_record_with_its_last_words(
    body: str, status: str, kind: str, exit_code: int | None, signal_name: str | None, message: str,
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("runner.local.process.OOM_COUNTERS", ())  # other tests run out of memory at the same time
    make_interpreter(tmp_path / "python", body)

    result = executor.measure_repeat(make_repeat(2))

    assert read_records(executor) == [result]
    assert (result.status, result.written_by, result.repeat) == (status, "runner", 2)
    assert result.error is not None
    assert (kind, exit_code, signal_name) == (result.error.kind, result.error.exit_code, result.error.signal)
    assert result.error.message.startswith(message)
    assert result.error.stderr_tail.endswith("why\n")


def test_a_process_that_hangs_leaves_a_record_that_says_so(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    make_interpreter(tmp_path / "python", f"trap '' TERM\necho stuck\nsleep 1000 &\necho $! > {pid}\nwait")
    end_time_when(lambda: pid.exists() and len(read_pids(pid)) == 1, monkeypatch, "runner.local.process")

    result = executor.measure_repeat(make_repeat())

    assert read_records(executor) == [result]
    assert result.error is not None
    assert (result.status, result.error.kind, result.error.signal) == ("timeout", "timeout", "SIGKILL")
    assert f"timeout_seconds = {HANG_GUARD_SECONDS:g}" in result.error.message
    assert result.error.stderr_tail == "stuck\n"
    await_death(read_pids(pid))


def test_a_process_that_the_kernel_kills_for_memory_leaves_an_oom_record(
    executor: LocalExecutor, tmp_path: Path, memory_cgroup: MemoryCgroup
) -> None:
    fill = "print('filling', flush=True); full = b'x' * 2**30"
    body = f"{memory_cgroup.join_command}\nexec {sys.executable} -S -c {shlex.quote(fill)}"
    make_interpreter(tmp_path / "python", body)

    result = executor.measure_repeat(make_repeat())

    assert read_records(executor) == [result]
    assert result.error is not None
    assert (result.status, result.error.kind, result.error.signal) == ("oom", "out-of-memory", "SIGKILL")
    assert result.error.stderr_tail == "filling\n"


def test_a_process_that_takes_more_memory_than_it_may_leaves_an_oom_record(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    fill = "import time; print('filling', flush=True); full = b'x' * 2**28; time.sleep(1000)"
    make_interpreter(tmp_path / "python", f"{sys.executable} -S -c {shlex.quote(fill)}")

    result = replace(executor, memory_limit_bytes=2**27).measure_repeat(make_repeat())

    assert read_records(executor) == [result]
    assert result.error is not None
    assert (result.status, result.error.kind) == ("oom", "out-of-memory")
    assert "more memory" in result.error.message
    assert result.error.stderr_tail == "filling\n"


@pytest.mark.parametrize("content", ["#!/no/such/interpreter\n", "no program at all"])
def test_an_interpreter_that_cannot_be_executed_leaves_a_record(
    content: str, executor: LocalExecutor, tmp_path: Path
) -> None:
    (tmp_path / "python").write_text(content)
    (tmp_path / "python").chmod(0o755)

    result = executor.measure_repeat(make_repeat())

    assert read_records(executor) == [result]
    assert result.error is not None
    assert (result.status, result.error.kind) == ("failed", "exit")
    assert result.error.message.startswith("the process could not be started: [Errno ")


@pytest.mark.parametrize("command", ['exec {python} "$@"', '{python} "$@"'])
def test_a_missing_framework_is_recorded_by_bench_itself(command: str, executor: LocalExecutor, tmp_path: Path) -> None:
    """The tool's own Python has `bench` and no PyTorch. Without `exec` the parent of `bench` is a shell."""
    make_interpreter(tmp_path / "python", command.format(python=sys.executable))

    result = executor.measure_repeat(make_repeat())

    assert read_records(executor) == [result]
    assert result.error is not None
    assert (result.status, result.written_by, result.error.kind) == ("failed", "bench", "missing-framework")
    assert result.error.message == "ModuleNotFoundError: No module named 'torch'"


def test_an_ok_record_counts_as_it_was_written(executor: LocalExecutor, tmp_path: Path) -> None:
    make_measuring_interpreter(tmp_path / "python", log=tmp_path / "log")

    result = executor.measure_repeat(make_repeat(3))

    assert read_records(executor) == [result]
    assert (result.status, result.written_by, result.repeat) == ("ok", "bench", 3)
    assert read_log(tmp_path / "log") == [(result.cell_id, 3)]


@pytest.mark.parametrize("end", ["kill -SEGV $$", "exit 9", "sleep 1000"])
def test_a_record_that_is_there_counts_however_the_process_ends(
    end: str, executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one hangs at its end, as threads of a framework can, and is killed when its time is up."""
    (tmp_path / "record").write_bytes(make_result(attempt="placeholder").to_json())
    results = f"{tmp_path}/store/{results_prefix(executor.run_id)}{make_cell().cell_id}"
    put = f'sed "s/placeholder/$BENCH_ATTEMPT/" {tmp_path}/record > "{results}/1-$BENCH_ATTEMPT.json"'
    make_interpreter(tmp_path / "python", f"mkdir -p {results}\n{put}\ntouch {tmp_path}/put\n{end}")
    if end.startswith("sleep"):
        end_time_when((tmp_path / "put").exists, monkeypatch, "runner.local.process")

    result = executor.measure_repeat(make_repeat())

    assert result.status == "ok"
    assert read_records(executor) == [result]


def test_repeats_are_measured_in_turn_and_reported_to_the_observer(executor: LocalExecutor, tmp_path: Path) -> None:
    make_interpreter(tmp_path / "python", 'test "$BENCH_REPEAT" = 2')

    executor.measure_repeats([make_repeat(1), make_repeat(2)])

    assert isinstance(executor.observer, Notes)
    assert executor.observer.lines == ["start 1", "finish 1 failed", "start 2", "finish 2 failed"]
    assert {record.repeat: record.error.exit_code for record in read_records(executor) if record.error} == {1: 1, 2: 0}


def test_a_store_that_fails_stops_the_run_and_the_repeat_stays_missing(executor: LocalExecutor, tmp_path: Path) -> None:
    """The process crashes after it has put a file where the folder of results has to be."""
    results = tmp_path / "store" / "runs" / executor.run_id / "results"
    make_interpreter(tmp_path / "python", f"mkdir -p {results.parent}; touch {results}; exit 1")

    with pytest.raises(StoreError, match="has one where a directory is needed"):
        executor.measure_repeats([make_repeat(1), make_repeat(2)])

    assert isinstance(executor.observer, Notes)
    assert executor.observer.lines == ["start 1"]
    results.unlink()
    assert read_records(executor) == []


def test_the_order_and_the_package_reach_the_process_and_old_orders_do_not(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_IMAGE", "left-over")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    make_interpreter(tmp_path / "python", f'echo "$@" > {tmp_path}/arguments; env > {tmp_path}/env; exec sleep 0')

    executor.measure_repeat(make_repeat(2))

    variables = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    assert (tmp_path / "arguments").read_text() == "-m bench\n"
    assert "BENCH_IMAGE" not in variables
    assert variables["PYTHONPATH"] == f"{BENCH}:/elsewhere"
    assert (variables["OMP_NUM_THREADS"], variables["PYTHONUNBUFFERED"]) == ("3", "1")
    assert (variables["BENCH_RUN_ID"], variables["BENCH_REPEAT"]) == (executor.run_id, "2")
    assert (str(os.getpid()), executor.store.url) == (variables["BENCH_PARENT_PID"], variables["BENCH_STORE"])


def test_attempts_at_a_repeat_have_keys_of_their_own(executor: LocalExecutor, tmp_path: Path) -> None:
    make_interpreter(tmp_path / "python", "exit 1")

    executor.measure_repeats([make_repeat(1), make_repeat(1)])

    assert [record.repeat for record in read_records(executor)] == [1, 1]

"""runner.local.run: however a measuring process ends, alone or as one of several tenants, one record says how."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.schema import Framework, Neighbour, PlannedCell, Result, TenantRecord
from bench.store import Store, meeting_key, result_key, results_prefix
from bench_process import use_one_core
from factories import RUN_ID, make_cell, make_result, present
from fake_interpreters import make_interpreter
from fake_mps import install_mps
from fake_nvml import install_nvml
from local_processes import end_time_when
from runner.local.run import LocalExecutor
from runner.matrix import Repeat
from workspace import HANG_GUARD_SECONDS

BENCH = Path(__file__).parents[4] / "images" / "bench" / "src"


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


def test_an_interpreter_that_cannot_be_executed_leaves_a_record(executor: LocalExecutor, tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/no/such/interpreter\n")
    (tmp_path / "python").chmod(0o755)

    result = executor.measure_repeat(make_repeat())

    assert read_records(executor) == [result]
    assert result.error is not None
    assert (result.status, result.error.kind) == ("failed", "exit")
    assert result.error.message.startswith("the process could not be started: [Errno ")


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


def test_the_order_and_the_package_reach_the_process_and_old_orders_do_not(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_IMAGE", "left-over")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    for name in ("OMP_THREAD_LIMIT", "TORCHDYNAMO_DISABLE", "LD_PRELOAD", "JAX_DISABLE_JIT"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    executor = replace(executor, variables={"OMP_PROC_BIND": "close"})
    make_interpreter(tmp_path / "python", f'echo "$@" > {tmp_path}/arguments; env > {tmp_path}/env; exec sleep 0')

    executor.measure_repeat(make_repeat(2))

    variables = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    assert (tmp_path / "arguments").read_text() == "-m bench\n"
    assert "BENCH_IMAGE" not in variables
    assert not {"OMP_THREAD_LIMIT", "TORCHDYNAMO_DISABLE", "LD_PRELOAD", "JAX_DISABLE_JIT"} & variables.keys()
    assert (variables["CUDA_VISIBLE_DEVICES"], variables["OMP_PROC_BIND"]) == ("1", "close")
    assert (variables["PYTHONPATH"], variables["PYTHONNOUSERSITE"]) == (str(BENCH), "1")
    assert variables["PYTHONUNBUFFERED"] == "1"
    assert (variables["BENCH_RUN_ID"], variables["BENCH_REPEAT"]) == (executor.run_id, "2")
    assert (str(os.getpid()), executor.store.url) == (variables["BENCH_PARENT_PID"], variables["BENCH_STORE"])


def test_a_record_that_the_store_did_not_take_is_named_with_its_place(executor: LocalExecutor, tmp_path: Path) -> None:
    code = (
        "import os; from bench.worker.delivery import find_spare; from bench.worker.request import Order; "
        "from bench.store import result_key; order = Order.from_variables(os.environ); "
        "spare = find_spare(result_key(order.run_id, order.cell.cell_id, order.repeat, order.attempt)); "
        "spare.write_text('{}'); print('no permission'); raise SystemExit(6)"
    )
    make_interpreter(tmp_path / "python", f"exec {shlex.quote(sys.executable)} -c {shlex.quote(code)}")
    with pytest.raises(UserError, match=r"it lies in (?P<place>\S+), from(?s:.*)no permission") as caught:
        executor.measure_repeat(make_repeat())
    Path(str(caught.value).partition("it lies in ")[2].partition(",")[0]).unlink()
    assert read_records(executor) == []


def test_an_interpreter_of_the_user_keeps_the_path_that_he_set(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    make_interpreter(tmp_path / "python", f"env > {tmp_path}/env")

    replace(executor, own_python_path=frozenset({"pytorch"})).measure_repeat(make_repeat())

    assert f"PYTHONPATH={BENCH}:/elsewhere\n" in (tmp_path / "env").read_text()


def measure(executor: LocalExecutor, **fields: Any) -> Result:
    """Measure one repeat of a cell with these fields, of which a killed runner has begun an attempt before."""
    planned = PlannedCell(cell=make_cell(**fields), repeats=1, timeout_seconds=HANG_GUARD_SECONDS)
    if planned.cell.tenants > 1:
        executor.store.put(meeting_key(RUN_ID, planned.cell.cell_id, 1, "killed", "call"), b"{}")
    result = executor.measure_repeat(Repeat(planned=planned, number=1))
    stored = executor.store.get(result_key(RUN_ID, result.cell_id, 1, result.attempt))
    assert Result.model_validate_json(stored) == result
    assert list(executor.store.list_keys(f"runs/{RUN_ID}/tenants/")) == []
    return result


def test_every_tenant_is_a_process_that_tells_what_became_of_it(executor: LocalExecutor, tmp_path: Path) -> None:
    """The tool's own Python has `bench` and no PyTorch."""
    make_interpreter(tmp_path / "python", f'exec {sys.executable} "$@"')
    result = measure(executor, tenants=2)
    assert result.tenancy is not None
    assert result.error is not None
    assert (result.status, result.written_by, result.error.kind) == ("failed", "bench", "missing-framework")
    assert result.error.message.startswith("2 of 2 tenants ended 'failed'; tenant 0: ModuleNotFoundError")
    assert [record.error and record.error.kind for record in result.tenancy.tenants] == ["missing-framework"] * 2


def test_the_others_are_told_of_a_tenant_that_died(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.local.process.OOM_COUNTERS", ())  # other tests run out of memory at the same time
    folder = f"{tmp_path}/store/runs/{RUN_ID}/tenants/$CELL/1-$BENCH_TENANT_GROUP"
    cell_id = make_cell(tenants=2).cell_id
    wait = f"CELL={cell_id}; while ! cp {folder}/end-1.json {tmp_path}/end 2> /dev/null; do sleep 0.05; done"
    make_interpreter(tmp_path / "python", f"[ $BENCH_TENANT = 1 ] && kill -9 $$\n{wait}\nexit 7")
    result = measure(executor, tenants=2)
    record = TenantRecord.model_validate_json((tmp_path / "end").read_bytes())
    assert record.error is not None
    assert (record.tenant, record.status, record.error.kind, record.error.signal) == (1, "failed", "killed", "SIGKILL")
    assert (result.status, result.written_by, present(result.error).exit_code) == ("failed", "runner", 7)


def test_tenants_under_mps_find_a_daemon_of_their_own(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_nvml(monkeypatch)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    log = install_mps(tmp_path)
    make_interpreter(tmp_path / "python", f"echo $CUDA_MPS_PIPE_DIRECTORY >> {tmp_path}/said")
    measure(executor, device="gpu", tenants=2, sharing="mps")
    measure(executor, device="gpu", tenants=1, sharing="mps")
    device_and_folder = [line.split() for line in log.read_text().splitlines()]
    assert [device for device, _ in device_and_folder] == ["GPU-aaaa1111"] * 2
    first, second = (folder for _, folder in device_and_folder)
    assert (tmp_path / "said").read_text().split() == [first, first, second]
    assert not Path(first).exists()


def test_tenants_of_slices_have_one_each(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_nvml(monkeypatch).slices = {1: (3, 4)}
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    make_interpreter(tmp_path / "python", f"echo $BENCH_TENANT $CUDA_VISIBLE_DEVICES >> {tmp_path}/said")
    measure(executor, device="gpu", tenants=2, sharing="mig")
    assert sorted((tmp_path / "said").read_text().splitlines()) == ["0 MIG-cccc4444", "1 MIG-dddd5555"]
    result = measure(executor, device="gpu", tenants=3, sharing="mig")
    assert "the GPU has 2 MIG slices now, and the cell 3 tenants" in present(result.error).message


def test_two_tenants_step_side_by_side(executor: LocalExecutor, interpreters: dict[Framework, Path]) -> None:
    neighbour = Neighbour(
        model="conv6", phase="train", batch_size=2, precision="fp32", mode="eager", input_size=32, num_classes=10
    )
    # On busy cores a step of milliseconds can take a second: a window of three holds whole steps of both all the same.
    short = {"num_steps": 3, "min_seconds": 3.0, "max_warmup_seconds": 1.0}
    executor = replace(executor, interpreters=interpreters)
    cores = os.sched_getaffinity(0)
    use_one_core()  # on which no threads burn others waiting for one another
    try:
        result = measure(executor, phase="infer", batch_size=1, tenants=2, neighbour=neighbour, **short)
    finally:
        os.sched_setaffinity(0, cores)
    assert (result.status, result.written_by, result.error) == ("ok", "bench", None)
    assert result.tenancy is not None
    assert result.tenancy.group == result.attempt
    first, second = result.tenancy.tenants
    assert first.place is not None
    assert second.place is not None
    assert (first.place.pids != second.place.pids, first.place.boot_id) == (True, second.place.boot_id)
    assert first.samples == result.samples
    for record in (first, second):
        assert 0 < sum(present(record.samples).step_seconds) <= (result.tenancy.window_seconds or 0.0)
        assert (record.lateness_seconds or 0.0) >= 0.0
    assert "wrong-device" not in [reason.verdict for reason in present(result.validity).reasons]

"""runner.local.executor with several tenants: one record of all, whatever becomes of one of them."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.schema import PlannedCell, Result, TenantRecord
from bench.store import Store, meeting_key, result_key, tenants_prefix
from factories import RUN_ID, make_cell
from fake_interpreters import make_interpreter
from fake_mps import install_mps
from fake_nvml import install_nvml
from runner.local.executor import LocalExecutor, Observer
from runner.matrix.plan import Repeat
from workspace import HANG_GUARD_SECONDS


@pytest.fixture
def executor(tmp_path: Path) -> LocalExecutor:
    """An executor whose interpreter, `tmp_path / "python"`, the test has yet to make."""
    return LocalExecutor(
        run_id=RUN_ID,
        store=Store.open(f"file://{tmp_path}/store"),
        interpreters={"pytorch": tmp_path / "python"},
        lock=0,
        observer=Observer(),
    )


def measure(executor: LocalExecutor, **fields: Any) -> Result:
    """Measure one repeat of a cell with these fields, of which a killed runner has begun an attempt before."""
    planned = PlannedCell(cell=make_cell(**fields), repeats=1, timeout_seconds=HANG_GUARD_SECONDS)
    if planned.cell.tenants > 1:
        executor.store.put(meeting_key(RUN_ID, planned.cell.cell_id, 1, "killed", "call"), b"{}")
    result = executor.measure_repeat(Repeat(planned=planned, number=1))
    stored = executor.store.get(result_key(RUN_ID, result.cell_id, 1, result.attempt))
    assert Result.model_validate_json(stored) == result
    assert list(executor.store.list_keys(tenants_prefix(RUN_ID))) == []
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
    folder = f"{tmp_path}/store/{tenants_prefix(RUN_ID)}$CELL/1-$BENCH_TENANT_GROUP"
    cell_id = make_cell(tenants=2).cell_id
    wait = f"CELL={cell_id}; while ! cp {folder}/end-1.json {tmp_path}/end 2> /dev/null; do sleep 0.05; done"
    make_interpreter(tmp_path / "python", f"[ $BENCH_TENANT = 1 ] && kill -9 $$\n{wait}\nexit 7")
    result = measure(executor, tenants=2)
    record = TenantRecord.model_validate_json((tmp_path / "end").read_bytes())
    assert record.error is not None
    assert (record.tenant, record.status, record.error.kind, record.error.signal) == (1, "failed", "killed", "SIGKILL")
    assert result.error is not None
    assert (result.status, result.written_by, result.error.exit_code) == ("failed", "runner", 7)


def test_tenants_share_a_group_and_differ_in_their_number(executor: LocalExecutor, tmp_path: Path) -> None:
    say = f"echo $BENCH_TENANT $BENCH_TENANT_GROUP $BENCH_ATTEMPT >> {tmp_path}/said"
    make_interpreter(tmp_path / "python", say)
    result = measure(executor, tenants=3)
    said = sorted(line.split() for line in (tmp_path / "said").read_text().splitlines())
    assert [words[0] for words in said] == ["0", "1", "2"]
    assert {words[1] for words in said} == {result.attempt}
    assert said[0][2] == result.attempt
    assert len({words[2] for words in said}) == 3


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


def test_mps_that_does_not_start_is_the_record(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = measure(executor, device="gpu", tenants=2, sharing="mps")
    assert result.error is not None
    assert result.error.message.startswith("the process could not be started: nvidia-cuda-mps-control -d")


def test_tenants_of_slices_have_one_each(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_nvml(monkeypatch).slices = {1: (3, 4)}
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    make_interpreter(tmp_path / "python", f"echo $BENCH_TENANT $CUDA_VISIBLE_DEVICES >> {tmp_path}/said")
    measure(executor, device="gpu", tenants=2, sharing="mig")
    assert sorted((tmp_path / "said").read_text().splitlines()) == ["0 MIG-cccc4444", "1 MIG-dddd5555"]
    result = measure(executor, device="gpu", tenants=3, sharing="mig")
    assert result.error is not None
    assert "the GPU has 2 MIG slices now, and the cell 3 tenants" in result.error.message

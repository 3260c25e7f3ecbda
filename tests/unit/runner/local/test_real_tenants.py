"""Two tenants on the cores of this machine, with PyTorch, from the executor to the record."""

from pathlib import Path

from bench.schema import Framework, Neighbour, PlannedCell
from bench.store import Store, tenants_prefix
from factories import RUN_ID, make_cell
from runner.local.executor import LocalExecutor, Observer
from runner.matrix.plan import Repeat
from workspace import HANG_GUARD_SECONDS


def test_two_tenants_step_side_by_side(tmp_path: Path, interpreters: dict[Framework, Path]) -> None:
    neighbour = Neighbour(
        model="conv6", phase="train", batch_size=2, precision="fp32", mode="eager", input_size=32, num_classes=10
    )
    # On busy cores a step of milliseconds can take a second: a window of five holds whole steps of both all the same.
    cell = make_cell(
        phase="infer",
        batch_size=1,
        tenants=2,
        neighbour=neighbour,
        num_steps=3,
        min_seconds=5.0,
        max_warmup_seconds=1.0,
    )
    executor = LocalExecutor(
        run_id=RUN_ID,
        store=Store.open(f"file://{tmp_path}/store"),
        interpreters=interpreters,
        lock=0,
        observer=Observer(),
    )
    planned = PlannedCell(cell=cell, repeats=1, timeout_seconds=HANG_GUARD_SECONDS)
    result = executor.measure_repeat(Repeat(planned=planned, number=1))
    assert (result.status, result.written_by, result.error) == ("ok", "bench", None)
    assert result.tenancy is not None
    assert result.validity is not None
    assert result.tenancy.group == result.attempt
    first, second = result.tenancy.tenants
    assert first.place is not None
    assert second.place is not None
    assert first.place.pids != second.place.pids
    assert first.place.boot_id == second.place.boot_id
    assert first.samples == result.samples
    for record in (first, second):
        assert record.samples is not None
        assert 0 < sum(record.samples.step_seconds) <= (result.tenancy.window_seconds or 0.0)
        assert (record.lateness_seconds or 0.0) >= 0.0
    assert "wrong-device" not in [reason.verdict for reason in result.validity.reasons]
    assert list(executor.store.list_keys(tenants_prefix(RUN_ID))) == []

"""What is recorded and said of a matrix's nights, whatever `watch` is killed between."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.errors import UserError
from bench.schema import Cell, Neighbour, PlannedCell, Suspicion, read_decision, read_suspicion
from bench.store import Store
from factories import START, make_cell, make_identity, make_run, present
from nights import CELLS, SLOWED, SimulatedNights
from runner.matrix import load_matrix
from runner.nights import NightReport, describe_matrix, list_lines
from runner.nights import look as watch

SLOWER = {SLOWED.cell_id: 1.9}
HALF = {"cpu_quota_cores": 1.0}
TOO_NEW = "nothing can be said yet: a change is seen against 2 nights with repeats that count, at the least"
NOT_LOOKED_AT = (
    "1 of 3 planned cells are not looked at: none of their repeats counts (they have no result or "
    "failed, or their verdict says that they were disturbed)"
)


def look(nights: SimulatedNights, *, is_final: bool = False) -> NightReport:
    return watch(nights.store, is_final=is_final)


def put_slow_night(nights: SimulatedNights) -> tuple[Suspicion, str]:
    """Return what is suspected in the third night, and the run that measures it again."""
    for number in range(2):
        nights.put_night(number)
    nights.put_night(2, factors=SLOWER, environment=HALF)
    (suspicion,) = look(nights).pending
    return suspicion, present(suspicion.confirmation_run_id)


def list_parts(suspicion: Suspicion) -> list[tuple[str, str | None, str | None]]:
    return [(part.what, part.before, part.after) for part in suspicion.changes]


def test_a_slower_night_is_suspected_with_what_changed_beside_it(nights: SimulatedNights) -> None:
    suspicion, _ = put_slow_night(nights)
    assert suspicion.cell_ids == (SLOWED.cell_id,)
    assert suspicion.first_run_id == suspicion.night_run_id == "night-2"
    assert list_parts(suspicion) == [("cpu_quota_cores", "2.0", "1.0")]
    assert 1.8 < suspicion.shift.ratio < 2.0
    assert suspicion.confirmation_repeats == 15
    key = f"nights/smoke/changes/{suspicion.change_id}/suspicion.json"
    assert read_suspicion(nights.store.get(key)) == suspicion

    before = {key: nights.store.get(key) for key in nights.store.list_keys("nights")}
    look(nights)
    assert {key: nights.store.get(key) for key in nights.store.list_keys("nights")} == before


def test_another_machine_of_the_same_name_is_named_and_a_reboot_is_not(tmp_path: Path) -> None:
    hosts = ("bench-1 (boot aaaaaaaa of 2026-11-21 00:00:00)", "bench-1 (boot bbbbbbbb of 2026-11-21 01:00:00)")
    for ids, changes in ((), [("hostname", *hosts)]), (("x",), []):
        nights = SimulatedNights(store=Store.open(f"file://{tmp_path}/store{len(ids)}"))
        for number in (0, 1):
            nights.put_night(number, environment={"identity": make_identity("a", *ids)})
        nights.put_night(2, factors=SLOWER, environment={"identity": make_identity("b", *ids, minutes=60)})
        (suspicion,) = look(nights).pending
        assert list_parts(suspicion) == changes


def test_nothing_is_suspected_in_nights_that_are_alike_or_of_other_hardware(nights: SimulatedNights) -> None:
    for number in range(4):
        nights.put_night(number)
        report = look(nights)
        assert report.changes == []
        assert list_lines(report)[1:] == [TOO_NEW if number < 2 else "no change is suspected"]
    nights.put_night(4, factors=dict.fromkeys((cell.cell_id for cell in CELLS), 2.0), environment={"cpu_model": "old"})
    assert look(nights).changes == []


@pytest.mark.parametrize(
    ("again", "state"),
    [
        ({"factors": SLOWER}, "confirmed"),
        ({}, "dismissed"),
        ({"factors": SLOWER, "environment": {"cpu_model": "another"}}, "undecided"),
    ],
    ids=["as slow", "as fast as before", "on another type of node"],
)
def test_what_is_measured_again_is_decided(nights: SimulatedNights, again: dict[str, Any], state: str) -> None:
    suspicion, run_id = put_slow_night(nights)
    nights.put_confirmation(run_id, [SLOWED], **again)
    report = look(nights)
    assert [change.state for change in report.changes] == [state]
    assert (report.night, report.num_nights) == ("night-2", 3)  # a confirmation is no night
    key = f"nights/smoke/changes/{suspicion.change_id}/decision.json"
    assert read_decision(nights.store.get(key)) == report.changes[0].decision
    assert [change.suspicion for change in report.regressions] == [suspicion] * (state == "confirmed")


def test_a_confirmation_that_is_not_finished_is_waited_for(nights: SimulatedNights) -> None:
    _, run_id = put_slow_night(nights)
    nights.put_confirmation(run_id, [SLOWED], factors=SLOWER)
    for repeat in (8, 9, 10):
        nights.store.delete_many([f"runs/{run_id}/results/{SLOWED.cell_id}/{repeat}-a1.json"])
    assert [change.state for change in look(nights).changes] == ["pending"]
    assert [change.state for change in look(nights, is_final=True).changes] == ["confirmed"]


def test_what_was_not_measured_again_stays_undecided_and_the_next_night_suspects_anew(nights: SimulatedNights) -> None:
    put_slow_night(nights)
    nights.put_night(3, factors=SLOWER, environment=HALF)
    report = look(nights)
    assert [change.state for change in report.changes] == ["pending"]
    earlier, later = report.history.changes  # the oldest first
    assert (earlier.decision and earlier.decision.outcome, later.decision) == ("undecided", None)
    assert [change.suspicion.night_run_id for change in (earlier, later)] == ["night-2", "night-3"]


def test_a_confirmed_change_is_the_level_of_later_nights(nights: SimulatedNights) -> None:
    _, run_id = put_slow_night(nights)
    nights.put_confirmation(run_id, [SLOWED], factors=SLOWER)
    look(nights)
    for number in range(3, 6):
        nights.put_night(number, factors=SLOWER, environment=HALF)
        assert look(nights).changes == []


def test_a_change_for_the_better_is_recorded_without_a_confirmation(nights: SimulatedNights) -> None:
    for number in range(6):
        nights.put_night(number)
    nights.put_night(6, factors={SLOWED.cell_id: 0.5})
    report = look(nights)
    assert ([change.state for change in report.changes], report.regressions) == (["confirmed"], [])


def test_damaged_documents_and_clocks_that_are_wrong_are_named(nights: SimulatedNights) -> None:
    nights.put_night(0)
    nights.put_night(1, created_at=START + timedelta(days=20_000), run_id="to-come", matrix="another")
    nights.put_night(2, created_at=START + timedelta(days=20_001), run_id="later-still")
    nights.store.put("runs/broken/run.json", b"{")
    nights.store.put("nights/smoke/changes/abc/decision.json", b"{}")
    nights.store.put("nights/smoke/changes/abc/something.json", b"{}")

    report = look(nights)

    warnings = "\n".join(report.warnings)
    assert (report.matrix, report.night, report.num_nights) == ("smoke", "night-0", 1)
    assert "run broken: its run.json cannot be read (no JSON" in warnings
    for run_id in ("to-come", "later-still"):
        assert f"run {run_id}: began on" in warnings
    assert "nights/smoke/changes/abc/decision.json" in warnings
    assert "something.json: the key is not one of a change" in warnings


def test_all_cells_of_some_hardware_that_got_slower_are_one_change(nights: SimulatedNights) -> None:
    nights.cells = [make_cell(seed=seed) for seed in range(12)]
    for number in range(8):
        nights.put_night(number)
    nights.put_night(8, factors=dict.fromkeys((cell.cell_id for cell in nights.cells), 1.3))
    (of_all,) = [suspicion for suspicion in look(nights).pending if suspicion.num_cells == 12]
    assert len(of_all.cell_ids) == 5
    assert 1.2 < of_all.shift.ratio < 1.4


def test_a_slower_start_is_a_change_of_its_own(nights: SimulatedNights) -> None:
    for number in range(8):
        nights.put_night(number)
    nights.put_night(8, factors={"import": 2.0})
    pending = look(nights).pending
    assert {(suspicion.metric, *suspicion.cell_ids) for suspicion in pending} == {
        ("cold-start", cell.cell_id) for cell in nights.cells
    }
    again = present(pending[0].confirmation_run_id)
    nights.put_confirmation(again, nights.cells, factors={"import": 2.0})
    lines = list_lines(look(nights))
    assert sum("confirmed" in line and line.split("  ")[2].endswith(", cold start") for line in lines) == 3


@pytest.mark.parametrize("matrix", [None, "nightly"])
def test_a_store_without_nights_is_one_message(nights: SimulatedNights, matrix: str | None) -> None:
    if matrix:
        nights.put_night(0)
    with pytest.raises(UserError, match="smoke" if matrix else "no run here"):
        watch(nights.store, matrix)


def test_a_cell_whose_repeats_were_all_disturbed_is_not_passed_over_in_silence(nights: SimulatedNights) -> None:
    for number in (0, 1):
        nights.put_night(number)
    nights.put_night(2, disturbed=[SLOWED], factors={SLOWED.cell_id: 3.0})
    assert list_lines(look(nights))[1:] == [NOT_LOOKED_AT, "no change is suspected"]
    report = look(nights)
    assert (report.num_cells, report.num_uncounted, report.num_too_new) == (2, 1, 0)
    nights.put_night(3, disturbed=CELLS)
    assert list_lines(look(nights))[1:] == [NOT_LOOKED_AT.replace("1 of 3", "3 of 3")]


NEIGHBOUR = Neighbour(
    model="conv6", phase="infer", batch_size=1, precision="fp32", mode="eager", input_size=32, num_classes=10
)
AGAIN = (
    make_cell(),
    make_cell(batch_size=8),
    make_cell(framework="tensorflow", mode="graph", phase="infer"),
    make_cell(device="gpu", precision="bf16", mode="compiled", num_gpus=2, sustain_seconds=5.0),
    make_cell(device="gpu", tenants=4, sharing="mps"),
    make_cell(tenants=2, neighbour=NEIGHBOUR),
    make_cell(tenants=2, neighbour=NEIGHBOUR.model_copy(update={"batch_size": 8})),
    Cell(
        model="cyclegan", framework="jax", device="cpu", phase="train", mode="compiled", batch_size=1, input_size=128,
        num_classes=None,
    ),
)  # fmt: skip


def test_the_matrix_that_measures_again_has_the_same_cells_in_any_order(tmp_path: Path) -> None:
    for start in range(len(AGAIN)):
        cells = AGAIN[start:] + AGAIN[:start]
        planned = [
            PlannedCell(cell=cell, repeats=number, timeout_seconds=60.0 + number)
            for number, cell in enumerate(cells, start=10)
        ]
        path = tmp_path / "again.yaml"
        path.write_text(yaml.safe_dump(describe_matrix(make_run(cells), planned)))
        assert list(load_matrix(str(path)).cells) == planned

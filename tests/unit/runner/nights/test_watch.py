"""What `Watch` records of a matrix's nights, whatever it is killed between."""

from datetime import timedelta
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.schema import Node, read_decision, read_suspicion
from bench.store import Store
from collector.changes import read_history
from factories import START, make_cell, make_placement, make_result
from machine_facts import make_identity
from nights import CELLS, SLOWED, SimulatedNights
from runner.nights import NightReport, Watch

SLOWER = {SLOWED.cell_id: 1.9}
HALF = {"cpu_quota_cores": 1.0}
OTHER_BOOT = "bench-1 (boot bbbbbbbb of 2026-11-21 01:00:00)"


@pytest.fixture
def nights(tmp_path: Path) -> SimulatedNights:
    return SimulatedNights(store=Store.open(f"file://{tmp_path}/store"))


def put_slow_night(nights: SimulatedNights, *, num_before: int = 2) -> NightReport:
    for number in range(num_before):
        nights.put_night(number)
    nights.put_night(num_before, factors=SLOWER, environment=HALF)
    return Watch(store=nights.store).look()


def list_states(report: NightReport) -> list[tuple[str, str]]:
    return [
        ("pending" if change.decision is None else change.decision.outcome, change.suspicion.cell_ids[0])
        for change in report.changes
    ]


def test_a_slower_night_is_suspected_with_what_changed_beside_it(nights: SimulatedNights) -> None:
    report = put_slow_night(nights)

    (suspicion,) = report.pending
    assert suspicion.cell_ids == (SLOWED.cell_id,)
    assert suspicion.first_run_id == suspicion.night_run_id == "night-2"
    assert [(part.what, part.before, part.after) for part in suspicion.changes] == [("cpu_quota_cores", "2.0", "1.0")]
    assert 1.8 < suspicion.shift.ratio < 2.0
    assert suspicion.confirmation_repeats == 15
    key = f"nights/smoke/changes/{suspicion.change_id}/suspicion.json"
    assert read_suspicion(nights.store.get(key)) == suspicion


@pytest.mark.parametrize(
    ("ids", "change"),
    [
        ((), [("hostname", "bench-1 (boot aaaaaaaa of 2026-11-21 00:00:00)", OTHER_BOOT)]),
        (("x",), []),
    ],
)
def test_another_machine_of_the_same_name_is_named_and_a_reboot_is_not(
    nights: SimulatedNights, ids: tuple[str, ...], change: list[tuple[str, str, str]]
) -> None:
    for number in (0, 1):
        nights.put_night(number, environment={"identity": make_identity("a", *ids)})
    rebooted = {"identity": make_identity("b", *ids, minutes=60)}
    nights.put_night(2, factors=SLOWER, environment=rebooted)
    (suspicion,) = Watch(store=nights.store).look().pending
    assert [(part.what, part.before, part.after) for part in suspicion.changes] == change


def test_nothing_is_suspected_in_nights_that_are_alike(nights: SimulatedNights) -> None:
    for number in range(12):
        nights.put_night(number)
        assert Watch(store=nights.store).look().changes == []


def test_what_is_as_slow_when_measured_again_is_confirmed(nights: SimulatedNights) -> None:
    (suspicion,) = put_slow_night(nights).pending
    assert suspicion.confirmation_run_id is not None
    nights.put_confirmation(suspicion.confirmation_run_id, [SLOWED], factors=SLOWER)

    report = Watch(store=nights.store).look()

    (regression,) = report.regressions
    assert regression.decision is not None
    assert regression.decision.num_repeats == 10
    key = f"nights/smoke/changes/{suspicion.change_id}/decision.json"
    assert read_decision(nights.store.get(key)) == regression.decision


def test_what_is_as_fast_as_before_when_measured_again_is_dismissed(nights: SimulatedNights) -> None:
    (suspicion,) = put_slow_night(nights).pending
    assert suspicion.confirmation_run_id is not None
    nights.put_confirmation(suspicion.confirmation_run_id, [SLOWED])

    assert list_states(Watch(store=nights.store).look()) == [("dismissed", SLOWED.cell_id)]


def test_a_confirmation_that_is_not_finished_is_waited_for(nights: SimulatedNights) -> None:
    (suspicion,) = put_slow_night(nights).pending
    assert suspicion.confirmation_run_id is not None
    run = nights.put_confirmation(suspicion.confirmation_run_id, [SLOWED], factors=SLOWER)
    folder = Path(nights.store.url.removeprefix("file://"), "runs", run.run_id, "results", SLOWED.cell_id)
    for repeat in (8, 9, 10):
        (folder / f"{repeat}-a1.json").unlink()

    assert list_states(Watch(store=nights.store).look()) == [("pending", SLOWED.cell_id)]
    assert list_states(Watch(store=nights.store).look(is_final=True)) == [("confirmed", SLOWED.cell_id)]


def test_what_was_not_measured_again_stays_undecided_and_the_next_night_suspects_anew(nights: SimulatedNights) -> None:
    put_slow_night(nights)
    nights.put_night(3, factors=SLOWER, environment=HALF)

    report = Watch(store=nights.store).look()

    assert list_states(report) == [("pending", SLOWED.cell_id)]
    earlier = report.history.of_night("night-2")
    assert [change.decision.outcome for change in earlier if change.decision is not None] == ["undecided"]


def test_a_confirmation_on_another_type_of_node_decides_nothing(nights: SimulatedNights) -> None:
    (suspicion,) = put_slow_night(nights).pending
    assert suspicion.confirmation_run_id is not None
    nights.put_confirmation(
        suspicion.confirmation_run_id, [SLOWED], factors=SLOWER, environment={"cpu_model": "another"}
    )

    report = Watch(store=nights.store).look()

    assert list_states(report) == [("undecided", SLOWED.cell_id)]


def test_a_confirmed_change_is_the_level_of_later_nights(nights: SimulatedNights) -> None:
    (suspicion,) = put_slow_night(nights).pending
    assert suspicion.confirmation_run_id is not None
    nights.put_confirmation(suspicion.confirmation_run_id, [SLOWED], factors=SLOWER)
    Watch(store=nights.store).look()
    for number in range(3, 8):
        nights.put_night(number, factors=SLOWER, environment=HALF)
        assert Watch(store=nights.store).look().changes == []


def test_a_change_for_the_better_is_recorded_without_a_confirmation(nights: SimulatedNights) -> None:
    for number in range(6):
        nights.put_night(number)
    nights.put_night(6, factors={SLOWED.cell_id: 0.5})

    report = Watch(store=nights.store).look()

    assert list_states(report) == [("confirmed", SLOWED.cell_id)]
    assert report.regressions == []


def test_looking_twice_writes_the_same_documents(nights: SimulatedNights) -> None:
    put_slow_night(nights)
    before = {key: nights.store.get(key) for key in nights.store.list_keys("nights")}

    Watch(store=nights.store).look()

    assert {key: nights.store.get(key) for key in nights.store.list_keys("nights")} == before


def test_a_confirmation_is_no_night(nights: SimulatedNights) -> None:
    (suspicion,) = put_slow_night(nights).pending
    assert suspicion.confirmation_run_id is not None
    nights.put_confirmation(suspicion.confirmation_run_id, [SLOWED], factors=SLOWER)

    report = Watch(store=nights.store).look()

    assert (report.matrix, report.night.run_id, report.num_nights) == ("smoke", "night-2", 3)


def test_damaged_documents_and_clocks_that_are_wrong_are_named(nights: SimulatedNights) -> None:
    nights.put_night(0)
    nights.put_night(1, created_at=START + timedelta(days=20_000), run_id="to-come", matrix="another")
    nights.put_night(2, created_at=START + timedelta(days=20_001), run_id="later-still")
    nights.store.put("runs/broken/run.json", b"{")
    nights.store.put("nights/smoke/changes/abc/decision.json", b"{}")
    nights.store.put("nights/smoke/changes/abc/something.json", b"{}")

    report = Watch(store=nights.store).look()

    warnings = "\n".join(report.warnings)
    assert (report.matrix, report.night.run_id, report.num_nights) == ("smoke", "night-0", 1)
    assert "run broken: its run.json cannot be read (no JSON" in warnings
    for run_id in ("to-come", "later-still"):
        assert f"run {run_id}: began on" in warnings
    assert "nights/smoke/changes/abc/decision.json" in warnings
    assert "something.json: the key is not one of a change" in warnings


def test_a_night_on_other_hardware_is_compared_with_none(nights: SimulatedNights) -> None:
    for number in range(3):
        nights.put_night(number)
    nights.put_night(3, factors=dict.fromkeys((cell.cell_id for cell in CELLS), 2.0), environment={"cpu_model": "old"})

    assert Watch(store=nights.store).look().changes == []


def test_an_instance_type_that_changed_is_named(nights: SimulatedNights) -> None:
    for number, instance_type in enumerate(("n2-standard-4", "n2-standard-4", "e2-standard-4")):
        run = nights.put_night(number, factors=SLOWER if number == 2 else {}, executor="kubernetes")
        for cell in CELLS:
            for repeat in (1, 2, 3):
                result = make_result(cell, run_id=run.run_id, repeat=repeat)
                placement = make_placement(result, Node(instance_type=instance_type))
                key = f"runs/{run.run_id}/placements/{cell.cell_id}/{repeat}-a1.json"
                nights.store.put(key, placement.to_json())

    (suspicion,) = Watch(store=nights.store).look().pending

    assert ("instance_type", "n2-standard-4", "e2-standard-4") in [
        (part.what, part.before, part.after) for part in suspicion.changes
    ]
    assert suspicion.instance_types == ("e2-standard-4",)


def test_all_cells_of_some_hardware_that_got_slower_are_one_change(nights: SimulatedNights) -> None:
    nights.cells = [make_cell(seed=seed) for seed in range(12)]
    for number in range(8):
        nights.put_night(number)
    nights.put_night(8, factors=dict.fromkeys((cell.cell_id for cell in nights.cells), 1.3))

    suspicions = Watch(store=nights.store).look().pending

    (of_all,) = [suspicion for suspicion in suspicions if suspicion.num_cells == 12]
    assert len(of_all.cell_ids) == 5
    assert 1.2 < of_all.shift.ratio < 1.4


@pytest.mark.parametrize("matrix", [None, "nightly"])
def test_a_store_without_nights_is_one_message(nights: SimulatedNights, matrix: str | None) -> None:
    if matrix:
        nights.put_night(0)
    with pytest.raises(UserError, match="smoke" if matrix else "no run here"):
        Watch(store=nights.store, matrix=matrix).look()


def test_history_has_the_oldest_change_first(nights: SimulatedNights) -> None:
    put_slow_night(nights)
    nights.put_night(3, factors=SLOWER, environment=HALF)
    Watch(store=nights.store).look()

    changes = read_history(nights.store, "smoke").changes

    assert [change.suspicion.night_run_id for change in changes] == ["night-2", "night-3"]

"""runner.matrix.plan: what is measured on this machine, in which order, and which run is taken up again."""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.capabilities import GpuKind
from bench.errors import UserError
from bench.schema import Cell, PlannedCell, Result, Run
from bench.store import Store
from collector.results.load import load_run
from factories import make_cell, make_failed_result, make_result, make_run, put_documents
from runner.kubernetes.recording import ResultRecorder
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.matrix.expansion import Matrix
from runner.matrix.plan import (
    Repeat,
    check_run_id,
    check_same_plan,
    count_failed_repeats,
    describe_damage,
    find_newest_run,
    find_unfinished_run,
    list_missing_repeats,
    order_repeats,
    plan_local_run,
    read_run,
)
from runner.records import Records

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
T4 = GpuKind(name="Tesla T4", compute_capability=(7, 5), num_gpus=1)
CELL_A, CELL_B = make_cell(), make_cell(framework="tensorflow")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"file://{tmp_path}/store")


def make_matrix(*cells: Cell, name: str = "smoke", repeats: int = 3) -> Matrix:
    planned = tuple(PlannedCell(cell=cell, repeats=repeats, timeout_seconds=60.0) for cell in cells)
    return Matrix(name=name, description="", cells=planned, source=f"{name}.yaml")


def make_own_run(*, begun: datetime = NOW, number: str = "ab12", **overrides: Any) -> Run:
    """Return a run of two cells with the id that the tool gives."""
    run_id = f"smoke-{begun:%Y%m%d-%H%M%S}-{number}"
    defaults = {"cells": (CELL_A, CELL_B), "repeats": 1, "run_id": run_id, "created_at": begun}
    return make_run(**(defaults | overrides))


def make_ok(run: Run, cell: Cell, repeat: int = 1, attempt: str = "a1") -> Result:
    return make_result(cell, run_id=run.run_id, repeat=repeat, attempt=attempt)


def make_failed(run: Run, cell: Cell, repeat: int = 1, attempt: str = "a1") -> Result:
    return make_failed_result(cell, run_id=run.run_id, repeat=repeat, attempt=attempt)


def name_repeats(repeats: list[Repeat]) -> list[tuple[str, int]]:
    return [(repeat.planned.cell.framework, repeat.number) for repeat in repeats]


def test_repeats_are_interleaved_also_where_cells_have_different_numbers() -> None:
    planned = [
        PlannedCell(cell=make_cell(batch_size=size), repeats=repeats, timeout_seconds=1.0)
        for size, repeats in ((1, 3), (2, 1), (4, 2))
    ]

    order = [(repeat.planned.cell.batch_size, repeat.number) for repeat in order_repeats(planned)]

    assert [(1, 1), (2, 1), (4, 1), (1, 2), (4, 2), (1, 3)] == order


def test_cells_for_a_gpu_are_left_out_with_the_reason_where_there_is_none() -> None:
    gpu = make_cell(device="gpu")

    run = plan_local_run(make_matrix(CELL_A, gpu, CELL_B), gpu=None, run_id=None)

    assert [CELL_A, CELL_B] == [planned.cell for planned in run.cells]
    assert [(gpu, "no NVIDIA GPU is visible on this machine")] == [(left.cell, left.reason) for left in run.left_out]


def test_where_a_gpu_is_visible_what_it_can_do_is_planned_and_the_rest_left_out() -> None:
    plain, bf16, two = (make_cell(device="gpu", **fields) for fields in ({}, {"precision": "bf16"}, {"num_gpus": 2}))

    run = plan_local_run(make_matrix(CELL_A, bf16, plain, two), gpu=T4, run_id=None)

    assert [CELL_A, plain] == [planned.cell for planned in run.cells]
    assert [bf16, two] == [left.cell for left in run.left_out]
    assert "bf16 needs a GPU of compute capability 8.0 or higher; Tesla T4 has 7.5" == run.left_out[0].reason


def test_compiled_cells_are_left_out_where_there_is_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    compiled = make_cell(mode="compiled")

    run = plan_local_run(make_matrix(CELL_A, compiled), gpu=None, run_id=None)

    assert [compiled] == [left.cell for left in run.left_out]
    assert "there is no g++ on PATH; install one" in run.left_out[0].reason


def test_a_matrix_of_which_nothing_can_run_is_refused_with_every_reason_once() -> None:
    cells = (make_cell(device="gpu"), make_cell(device="gpu", seed=1), make_cell(precision="tf32"))
    with pytest.raises(UserError) as caught:
        plan_local_run(make_matrix(*cells), gpu=None, run_id=None)
    assert (
        "smoke.yaml: no cell can run here: no NVIDIA GPU is visible on this machine; tf32 is a mode of NVIDIA GPUs, a "
        "CPU has none; leave it to cells with device gpu; add cells to the matrix that can, with `device: cpu` "
        "for example"
    ) == str(caught.value)


@pytest.mark.parametrize("name", ["smoke", "a", "x" * 63, "x" * 39 + "-" + "y" * 23])
def test_the_id_of_a_new_run_holds_name_and_time_and_fits(name: str) -> None:
    run = plan_local_run(make_matrix(CELL_A, name=name), gpu=None, run_id=None)

    match = re.fullmatch(r"(.*[^-])-(\d{8}-\d{6})-[0-9a-f]{4}", run.run_id)
    assert match is not None
    assert name.startswith(match[1])
    assert f"{run.created_at:%Y%m%d-%H%M%S}" == match[2]


def test_two_runs_begun_at_once_have_different_ids() -> None:
    ids = {plan_local_run(make_matrix(CELL_A), gpu=None, run_id=None).run_id for _ in range(3)}

    assert 3 == len(ids)


def test_a_user_without_a_name_is_named_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54_321)  # as in a container started with `--user 54321`

    assert "54321" == plan_local_run(make_matrix(CELL_A), gpu=None, run_id=None).user


def test_missing_is_what_has_no_key(store: Store) -> None:
    run = make_own_run(repeats=2)
    put_documents(store, run, [make_ok(run, CELL_A), make_failed(run, CELL_B), make_ok(run, CELL_B, repeat=2)])

    assert [("pytorch", 2)] == name_repeats(list_missing_repeats(store, run))


def test_failed_repeats_are_missing_if_asked_for_unless_another_attempt_went_well(store: Store) -> None:
    run = make_own_run(repeats=2)
    results = [
        make_failed(run, CELL_A),
        make_ok(run, CELL_A, attempt="a2"),
        make_failed(run, CELL_B),
        make_failed(run, CELL_B, attempt="a2"),
    ]
    put_documents(store, run, results)

    assert [("tensorflow", 1), ("pytorch", 2), ("tensorflow", 2)] == name_repeats(
        list_missing_repeats(store, run, retry_failed=True)
    )
    assert [("pytorch", 2), ("tensorflow", 2)] == name_repeats(list_missing_repeats(store, run))
    assert 1 == count_failed_repeats(store, run)


def test_keys_that_are_no_results_and_results_of_other_cells_do_not_count(store: Store) -> None:
    run = make_own_run()
    put_documents(store, run, [make_ok(run, make_cell(batch_size=1)), make_ok(run, CELL_A, repeat=2)])
    store.put(f"runs/{run.run_id}/results/notes.txt", b"")
    store.put(f"runs/{run.run_id}/results/{CELL_A.cell_id}/1-a1.json.tmp", b"")

    assert [("pytorch", 1), ("tensorflow", 1)] == name_repeats(list_missing_repeats(store, run))


def damage_first(run: Run, store: Store, how: str) -> str:
    """Put a damaged record of CELL_A into the store and return its key."""
    result = make_ok(run, CELL_A)
    data = result.to_json()
    damaged = {
        "cut": data[: len(data) // 2],
        "empty": b"",
        "no-json": b"{",
        "other-version": data.replace(b'"schema_version": 2', b'"schema_version": 3', 1),
        "anothers": make_ok(run, CELL_B).to_json(),
    }[how]
    assert damaged != data
    key = f"runs/{run.run_id}/results/{CELL_A.cell_id}/1-{result.attempt}.json"
    store.put(key, damaged)
    return key


@pytest.mark.parametrize("how", ["cut", "empty", "no-json", "other-version", "anothers"])
def test_a_damaged_record_is_missing_as_in_the_report(how: str, store: Store) -> None:
    run = make_own_run()
    put_documents(store, run, [make_ok(run, CELL_B)])
    key = damage_first(run, store, how)

    for retry_failed in (False, True):
        assert name_repeats(list_missing_repeats(store, run, retry_failed=retry_failed)) == [("pytorch", 1)]
    assert count_failed_repeats(store, run) == 0
    assert run == find_unfinished_run(store, make_own_run(), retry_failed=False)
    assert [document.key for document in load_run(store, run.run_id).skipped] == [key]
    told: list[str] = []
    describe_damage(Records.of(store, run).look(), told.append)
    assert told == [f"damaged records: 1, which count as missing; {key} for one"]


def test_a_damaged_record_counts_for_the_name_of_the_next_job(store: Store) -> None:
    run = make_own_run()
    damage_first(run, store, "cut")
    look = Records.of(store, run).look()
    assert look.num_records == {(CELL_A.cell_id, 1): 1}


@pytest.mark.parametrize("order", ["damaged-first", "damaged-last"])
def test_a_repeat_that_is_measured_again_has_the_record_that_can_be_read(order: str, store: Store) -> None:
    run = make_own_run()
    damage_first(run, store, "cut")
    repeat = list_missing_repeats(store, run)[0]
    tracked = TrackedJob(repeat=repeat, key=JobKey(run_id=run.run_id, cell_id=CELL_A.cell_id, number=1, retry_round=1))
    recorder = ResultRecorder(connection=None, namespace="none", store=store)  # type: ignore[arg-type]
    assert recorder.find_record(tracked) is None
    result = make_ok(run, CELL_A, attempt="zz" if order == "damaged-first" else "00")
    put_documents(store, run, [result])
    assert recorder.find_record(tracked) == result


def test_records_are_read_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_own_run()
    put_documents(store, run, [make_ok(run, CELL_A)])
    read: list[str] = []
    get_many = Store.get_many

    def note(self: Store, keys: Any) -> Any:
        keys = list(keys)
        read.extend(keys)
        return get_many(self, keys)

    monkeypatch.setattr(Store, "get_many", note)
    records = Records.of(store, run)
    records.look()
    put_documents(store, run, [make_ok(run, CELL_B)])
    look = records.look()
    assert (len(read), len(look.ok)) == (2, 2)


def test_the_newest_run_is_the_one_begun_last_whatever_its_name(store: Store) -> None:
    for name, age_hours in (("zzz", 3), ("aaa", 1), ("mmm", 2)):
        put_documents(store, make_run(run_id=name, created_at=NOW - timedelta(hours=age_hours)), [])

    assert "aaa" == find_newest_run(store).run_id


def test_folders_without_a_readable_plan_are_no_runs(store: Store) -> None:
    put_documents(store, make_run(run_id="good"), [])
    store.put("runs/no-plan/results/x.json", b"{}")
    store.put("runs/damaged/run.json", b"{")
    newer = make_run(run_id="newer", created_at=NOW + timedelta(hours=1)).to_json()
    store.put("runs/newer/run.json", newer.replace(b'"schema_version": 2', b'"schema_version": 3', 1))

    assert "good" == find_newest_run(store).run_id


def test_a_store_without_runs_is_said_to_have_none(store: Store) -> None:
    with pytest.raises(UserError, match=r"store file://.*: no run here; name the right one with --store, or begin one"):
        find_newest_run(store)


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        ({}, True),
        ({"begun": NOW - timedelta(hours=23, minutes=59)}, True),
        ({"begun": NOW - timedelta(hours=24, seconds=1)}, False),
        ({"begun": NOW + timedelta(minutes=5)}, True),  # another machine's clock, or this one's set back
        ({"hostname": "bench-2"}, False),
        ({"repeats": 2}, False),
        ({"cells": (CELL_A,)}, False),
        ({"timeout_seconds": 1.0}, True),
        ({"git_revision": "0" * 40, "tool_version": "0.0.1", "user": "eve"}, True),
        ({"run_id": "my-run"}, False),  # named by the user: taken up by that name alone
        ({"run_id": "smoke-20260301-120000-ab12x"}, False),
    ],
)
def test_a_run_of_the_same_plan_is_taken_up_on_the_same_machine_within_a_day(
    changes: dict[str, Any], is_found: bool, store: Store
) -> None:
    run = make_own_run(**changes)
    put_documents(store, run, [])

    found = find_unfinished_run(store, make_own_run(number="0000"), retry_failed=False)

    assert (run if is_found else None) == found


def test_of_two_unfinished_runs_the_newer_one_is_taken_up(store: Store) -> None:
    for hours in (3, 1, 2):
        put_documents(store, make_own_run(begun=NOW - timedelta(hours=hours), number="ffff"), [])

    found = find_unfinished_run(store, make_own_run(), retry_failed=False)

    assert found is not None
    assert NOW - timedelta(hours=1) == found.created_at


def test_a_finished_run_is_taken_up_only_to_retry_what_failed(store: Store) -> None:
    finished = make_own_run(begun=NOW - timedelta(hours=1))
    put_documents(store, finished, [make_ok(finished, CELL_A), make_failed(finished, CELL_B)])

    assert find_unfinished_run(store, make_own_run(), retry_failed=False) is None
    assert finished == find_unfinished_run(store, make_own_run(), retry_failed=True)


def test_a_run_without_failures_is_not_taken_up_to_retry(store: Store) -> None:
    finished = make_own_run(begun=NOW - timedelta(hours=1))
    put_documents(store, finished, [make_ok(finished, CELL_A), make_ok(finished, CELL_B)])

    assert find_unfinished_run(store, make_own_run(), retry_failed=True) is None


def test_damaged_plans_and_other_matrices_do_not_hide_the_unfinished_run(store: Store) -> None:
    run = make_own_run(begun=NOW - timedelta(hours=2))
    put_documents(store, run, [])
    store.put("runs/smoke-20260301-115900-0000/run.json", b"{")
    store.put("runs/smoke-20260301-115901-0000/results/x.json", b"{")
    for minute in range(20):
        put_documents(store, make_own_run(begun=NOW + timedelta(minutes=minute), hostname="bench-2"), [])
        put_documents(store, make_run(run_id=f"smoke-big-20260301-12{minute:02}00-0000"), [])

    assert run == find_unfinished_run(store, make_own_run(), retry_failed=False)


def test_the_name_of_a_run_of_another_plan_is_refused() -> None:
    here, there = make_own_run(), make_own_run(repeats=5)

    with pytest.raises(UserError, match=r"m\.yaml: run smoke-.* other cells or repeats \(10 repeats, here 2\); give"):
        check_same_plan(there, here, "m.yaml")


def test_a_plan_is_the_same_whatever_the_order_of_its_cells() -> None:
    check_same_plan(make_run((CELL_B, CELL_A)), make_run((CELL_A, CELL_B)), "m.yaml")


@pytest.mark.parametrize("run_id", ["", "My-Run", "a b", "-a", "a-", "../up", "a/b", "x" * 64, "ä"])
def test_what_is_no_id_of_a_run_is_refused(run_id: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"--run-id {run_id}: it takes")):
        check_run_id(run_id)


def test_a_run_named_but_unreadable_is_refused(store: Store) -> None:
    store.put("runs/my-run/run.json", b"{}")

    with pytest.raises(UserError, match=r"file://.*/runs/my-run/run\.json: no run of this version .*; give another"):
        read_run(store, "my-run")
    assert read_run(store, "other-run") is None

"""Step times that stand in two records were measured once: the copy does not count, and is named."""

from datetime import timedelta
from pathlib import Path

from bench.schema import Result
from collector.results.collection import Collection
from factories import START, make_cell, make_result
from measured_runs import collect_results
from tenancies import make_record, make_shared_result, make_tenancy

STEPS = tuple(0.1 + 0.0001 * number for number in range(30))
TRAIN, INFER = make_cell(), make_cell(phase="infer")


def measure(number: int, cell: object = TRAIN, steps: tuple[float, ...] = STEPS) -> Result:
    return make_result(
        cell,  # type: ignore[arg-type]
        repeat=number, attempt=f"a{number}", step_seconds=steps,
        started_at=START + timedelta(minutes=number),
    )  # fmt: skip


def list_reasons(collection: Collection) -> list[tuple[str, str]]:
    return [(found.key.rpartition("/")[2], found.reason) for found in collection.skipped]


def test_a_repeat_with_the_steps_of_another_does_not_count(tmp_path: Path) -> None:
    slower = tuple(1.01 * step for step in STEPS)
    found = collect_results(tmp_path, measure(1), measure(2), measure(3, steps=slower))
    assert found.results["status"].tolist() == ["ok", "missing", "ok"]
    [(name, reason)] = list_reasons(found)
    assert name == "2-a2.json"
    assert reason.startswith("a copy: its step times are those of runs/")
    assert reason.endswith("/1-a1.json, to the last digit")


def test_of_two_cells_with_the_same_steps_neither_counts(tmp_path: Path) -> None:
    found = collect_results(tmp_path, measure(1), measure(1, INFER), measure(2, steps=STEPS[:20]))
    assert found.results[found.results["status"] == "ok"]["repeat"].tolist() == [2]
    assert len(list_reasons(found)) == 2
    assert all("those of another cell" in reason for _, reason in list_reasons(found))


def share(number: int, *series: tuple[float, ...]) -> Result:
    records = tuple(make_record(tenant, step_seconds=steps) for tenant, steps in enumerate(series))
    tenancy = make_tenancy(*records, window_seconds=4.0)
    begin = START + timedelta(minutes=number)
    return make_shared_result(tenancy, repeat=number, attempt=f"a{number}", started_at=begin)


def test_a_repeat_with_the_steps_of_another_ones_further_tenant_does_not_count(tmp_path: Path) -> None:
    series = [tuple(factor * step for step in STEPS) for factor in (1.0, 1.01, 1.02, 1.03, 1.04)]
    found = collect_results(
        tmp_path, share(1, *series[:2]), share(2, series[2], series[1]), share(3, *series[3:]), repeats=3
    )
    assert found.results["status"].tolist() == ["ok", "missing", "ok"]
    [(name, reason)] = list_reasons(found)
    assert (name, reason.endswith("/1-a1.json, to the last digit")) == ("2-a2.json", True)


def test_few_steps_and_equal_ones_show_no_copy(tmp_path: Path) -> None:
    few, equal = STEPS[:9], (0.1,) * 30
    results = [measure(1, steps=few), measure(2, steps=few), measure(1, INFER, equal), measure(2, INFER, equal)]
    found = collect_results(tmp_path, *results, repeats=2)
    assert set(found.results["status"]) == {"ok"}
    assert found.results["steps_digest"].isna().all()


def test_a_record_that_contradicts_itself_does_not_count_and_is_named(tmp_path: Path) -> None:
    found = collect_results(tmp_path, measure(1), measure(2, steps=(0.1, 0.2, 0.4) * 10), repeats=2)
    assert found.results["status"].tolist() == ["ok", "missing"]
    [(name, reason)] = list_reasons(found)
    assert name == "2-a2.json"
    assert reason.startswith("contradicts itself: steps spread by 76%")

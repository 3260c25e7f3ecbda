"""Two runs are compared cell by cell, against what identical runs of the store differ by."""

import math
from pathlib import Path

import pytest

from bench.schema import CompiledPrograms, Result, Verdict
from bench.store import Store
from collector.results.load import load_run
from collector.versus.sides import MAX_RUNS, load_related_runs
from collector.versus.words import make_cell_table
from factories import (
    make_cell,
    make_environment,
    make_failed_result,
    make_memory,
    make_phases,
    make_result,
    make_validity,
)
from two_runs import EVEN, INFER, TRAIN, compare_runs, find_cell, put_run, scale


def test_a_slower_run_is_worse_and_the_ratio_is_b_over_a(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN, INFER: EVEN})
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 1.5), INFER: scale(EVEN, 0.6)})
    document = compare_runs(tmp_path)
    slower, faster = find_cell(document, TRAIN), find_cell(document, INFER)
    assert (slower.verdict, faster.verdict) == ("worse", "better")
    assert slower.ratio == pytest.approx(1.5)
    assert (document.exit_code, document.counts) == (1, {"worse": 1, "better": 1})
    assert document.conclusion == "B is worse: of 2 cells 1 slower, 1 faster."
    assert (slower.value_a, slower.value_b) == pytest.approx((0.1, 0.15), rel=1e-3)


def test_equal_runs_are_the_same_within_the_floor(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN})
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 1.01)})
    document = compare_runs(tmp_path)
    assert (document.exit_code, document.counts) == (0, {"same": 1})
    [noise] = document.noise
    assert noise.source == "default"
    assert noise.floor == pytest.approx(math.expm1(1.959964 * math.sqrt(2) * 0.03))


def test_identical_runs_of_the_store_make_the_floor(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN}, day=2)
    for day, factor in enumerate((1.004, 1.0)):
        put_run(tmp_path, f"night-{day}", {TRAIN: scale(EVEN, factor)}, day=day)
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 1.05)}, day=3)
    [noise] = compare_runs(tmp_path).noise
    assert (noise.source, noise.run_ids, noise.num_cells) == ("measured", ("a", "night-0", "night-1"), 1)
    assert noise.floor < 0.02


def test_runs_of_another_environment_or_revision_are_not_identical(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN})
    put_run(tmp_path, "b", {TRAIN: EVEN})
    put_run(tmp_path, "other", {TRAIN: EVEN}, environment=make_environment(python_version="3.14.0"))
    put_run(tmp_path, "changed", {TRAIN: EVEN}, environment=make_environment(git_revision="ffff"))
    assert [noise.source for noise in compare_runs(tmp_path).noise] == ["default"]


def test_only_the_newest_runs_of_the_same_cells_are_read(tmp_path: Path) -> None:
    for day in range(MAX_RUNS + 2):
        put_run(tmp_path, f"n-{day:02}", {TRAIN: EVEN}, day=day)
    put_run(tmp_path, "elsewhere", {INFER: EVEN}, day=99)
    put_run(tmp_path, "a", {TRAIN: EVEN})
    store = Store.open(f"file://{tmp_path}")
    store.put("runs/broken/run.json", b"{")
    found = load_related_runs(store, [load_run(store, "a")]).collections
    assert [one.run.run_id for one in found] == [f"n-{day:02}" for day in range(MAX_RUNS + 1, 1, -1)]


def test_runs_that_cannot_be_read_are_named_and_counted_for_the_noise_may_be_theirs(tmp_path: Path) -> None:
    for run_id in ("a", "b"):
        put_run(tmp_path, run_id, {TRAIN: EVEN})
    assert compare_runs(tmp_path).warnings == ()
    for number in range(7):
        Store.open(f"file://{tmp_path}").put(f"runs/broken-{number}/run.json", b"{")
    (warning,) = compare_runs(tmp_path).warnings
    assert warning.startswith("of 7 other runs it is not known whether they show the noise, as they cannot be read: ")
    assert "broken-0 (no JSON: " in warning
    assert warning.endswith(" and 2 more")


def test_a_cell_that_fails_in_b_is_worse_and_one_that_failed_in_a_is_not_comparable(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN}, make_failed_result(INFER, run_id="a", status="oom"))
    put_run(tmp_path, "b", {INFER: EVEN}, make_failed_result(TRAIN, run_id="b", status="oom"))
    document = compare_runs(tmp_path)
    assert find_cell(document, TRAIN).verdict == "fails"
    assert find_cell(document, TRAIN).reason == "no repeat of B ended ok (2 missing, 1 oom)"
    assert find_cell(document, INFER).verdict == "not comparable"
    assert document.exit_code == 1


OTHER_PYTHON = make_result(TRAIN, run_id="b", repeat=3, environment=make_environment(python_version="3.14.0"))


@pytest.mark.parametrize(
    ("medians", "others", "verdicts", "reason"),
    [
        ((0.1,), (), (), "one repeat of B counts, which says nothing about its spread"),
        (EVEN, (), ("contaminated",), "no repeat of B was measured under sound conditions (3 contaminated)"),
        (EVEN[:2], (OTHER_PYTHON,), (), "the repeats of B ran in several environments, which are not averaged"),
    ],
)
def test_what_cannot_be_compared_says_why(
    tmp_path: Path, medians: tuple[float, ...], others: tuple[Result, ...], verdicts: tuple[Verdict, ...], reason: str
) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN})
    put_run(tmp_path, "b", {TRAIN: medians}, *others, validity=make_validity(*verdicts))
    document = compare_runs(tmp_path)
    assert (document.cells[0].verdict, document.cells[0].reason) == ("not comparable", reason)
    assert (document.exit_code, document.cells[0].ratio) == (2, None)


def test_invalid_repeats_are_compared_on_request(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN})
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 2)}, validity=make_validity("contaminated"))
    document = compare_runs(tmp_path, include_invalid=True)
    assert (document.cells[0].verdict, document.cells[0].notes) == ("worse", ("B: 3 contaminated",))


def test_undecided_cells_are_counted_and_fail_on_request(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: (0.096, 0.1, 0.104)})
    put_run(tmp_path, "b", {TRAIN: (0.094, 0.1, 0.106)})
    document = compare_runs(tmp_path)
    assert (document.exit_code, document.counts) == (0, {"undecided": 1})
    assert document.conclusion.endswith("of 1 cell 1 undecided. Undecided is not the same.")
    assert document.cells[0].reasons == ("more-repeats",)
    assert compare_runs(tmp_path, fails_undecided=True).exit_code == 2


def test_cells_of_one_side_are_listed(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN, make_cell(batch_size=32): EVEN})
    put_run(tmp_path, "b", {TRAIN: EVEN, make_cell(batch_size=16): EVEN})
    document = compare_runs(tmp_path)
    assert [cell.cell_id for cell in document.only_in_a] == [make_cell(batch_size=32).cell_id]
    assert [cell.cell_id for cell in document.only_in_b] == [make_cell(batch_size=16).cell_id]
    assert len(document.cells) == 1


def test_peak_memory_is_compared_by_its_largest_repeats(tmp_path: Path) -> None:
    def store_run(run_id: str, *mebibytes: int) -> None:
        results = [
            make_result(TRAIN, run_id=run_id, repeat=number, memory=make_memory(peak_rss_bytes=size * 2**20))
            for number, size in enumerate(mebibytes, start=1)
        ]
        put_run(tmp_path, run_id, {}, *results)

    for run_id, sizes in {"a": (1000, 1000, 1010), "b": (1000, 1015, 1000), "c": (1030, 1030, 1030)}.items():
        store_run(run_id, *sizes)
    same, larger = (compare_runs(tmp_path, run_b=run_b, metric="peak-memory") for run_b in ("b", "c"))
    assert (same.cells[0].verdict, same.exit_code) == ("same", 0)
    assert same.cells[0].floor == pytest.approx(1030 / 1010 - 1)  # c is identical to a
    assert (larger.cells[0].ratio_low, larger.cells[0].p_value) == (None, None)
    assert larger.cells[0].ratio == pytest.approx(1030 / 1010)
    rows = make_cell_table(larger, larger.cells).format_rows()
    assert rows[0][3] == "1.020"


def test_a_start_is_compared_by_whether_its_programs_were_compiled_before(tmp_path: Path) -> None:
    for run_id, seconds in {"a": 9.5, "b": 14.5}.items():
        phases = make_phases((0.1,) * 3, (0.2, 0.1), first_step_seconds=seconds)
        results = [
            make_result(TRAIN, run_id=run_id, repeat=number, compiled_programs=programs, phases=phases)
            for number, loaded in enumerate((0, 4, 4), start=1)
            for programs in [CompiledPrograms(num_loaded=loaded, num_compiled=4 - loaded)]
        ]
        put_run(tmp_path, run_id, {}, *results)
    cold, warm = (compare_runs(tmp_path, metric=name).cells[0] for name in ("cold-start", "warm-start"))
    assert cold.reasons == ("one-repeat", "one-repeat")
    assert (warm.value_a, warm.value_b, warm.num_repeats_a) == pytest.approx((12.0, 17.0, 2))


def test_a_metric_without_any_known_noise_is_undecided(tmp_path: Path) -> None:
    cell = make_cell(device="gpu")
    put_run(tmp_path, "a", {cell: EVEN})
    put_run(tmp_path, "b", {cell: scale(EVEN, 2)})
    document = compare_runs(tmp_path, metric="energy")
    assert (document.cells[0].verdict, document.cells[0].reasons) == ("undecided", ("noise-unknown",))

"""The floor is what identical runs differ by, and nothing else is taken for it."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from collector.statistics import Estimate
from collector.versus.question import NoiseDescription, Source
from collector.versus.sides import RunEstimate, assume_noise, estimate_noise, list_differences
from collector.versus.words import describe_noise
from factories import START


def make_estimate(
    run: int, center: float, *, kind: str = "c", error: float | None = 1e-9, **overrides: str
) -> RunEstimate:
    return RunEstimate(
        kind=kind,
        cell_id=kind,
        device="cpu",
        run_id=f"run-{run}",
        started_at=START + timedelta(days=run),
        machines=overrides.get("machines", "bench-1"),
        estimate=Estimate(center=center, log_standard_error=error, degrees_of_freedom=2 if error else None),
    )


def make_pair(kind: str, log_difference: float, error: float = 1e-9) -> list[RunEstimate]:
    return [make_estimate(run, math.exp(log_difference * run), kind=kind, error=error) for run in (0, 1)]


def test_the_variance_of_two_runs_is_the_mean_square_of_the_differences_of_their_cells() -> None:
    noise = estimate_noise(list_differences([*make_pair("one", 0.02), *make_pair("two", 0.04)]))
    assert noise.between_runs.log_variance == pytest.approx((0.02**2 + 0.04**2) / 2)
    assert noise.shared.log_variance == pytest.approx(0.03**2)
    assert (noise.run_ids, noise.num_cells) == (("run-0", "run-1"), 2)


def test_what_the_repeats_explain_is_not_the_runs() -> None:
    noise = estimate_noise(list_differences(make_pair("one", 0.05, error=0.03)))
    assert noise.between_runs.excess == pytest.approx(0.05**2 - 2 * 0.03**2)


def test_runs_that_differ_by_less_than_their_repeats_still_have_a_floor() -> None:
    noise = estimate_noise(list_differences(make_pair("one", 0.001, error=0.03)))
    assert noise.between_runs.excess == 0
    assert noise.between_runs.log_floor > 0.01


def test_runs_of_one_kind_follow_each_other() -> None:
    shared = [replace(one, is_shared=True) for one in make_pair("shared", 0.2)]
    moved = [make_estimate(0, 1.0, kind="moved"), make_estimate(1, 1.1, kind="moved", machines="bench-2")]
    unknown = [make_estimate(0, 1.0, kind="one repeat"), make_estimate(1, 1.1, kind="one repeat", error=None)]
    ordered = [make_estimate(2, 1.3), make_estimate(0, 1.0), make_estimate(1, 1.1)]
    found = list_differences([*ordered, make_estimate(0, 1.0, kind="alone"), *shared, *moved, *unknown])
    assert [(one.cell_id, one.runs, round(math.exp(one.log_difference), 4), one.pool) for one in found] == [
        ("c", ("run-0", "run-1"), 1.1, ("cpu", True, False)),
        ("c", ("run-1", "run-2"), 1.1818, ("cpu", True, False)),
        ("shared", ("run-0", "run-1"), 1.2214, ("cpu", True, True)),
        ("moved", ("run-0", "run-1"), 1.1, ("cpu", False, False)),
    ]


def test_a_single_pair_of_runs_has_one_degree_of_freedom_and_more_runs_have_more() -> None:
    pairs = [make_estimate(run, math.exp(0.01 * (run % 2))) for run in range(6)]
    freedoms = [estimate_noise(list_differences(pairs[:number])).shared.degrees_of_freedom for number in (2, 3, 6)]
    assert freedoms == pytest.approx([1.0, 1.6, 50 / 14])


def test_a_cell_that_varies_more_than_the_others_has_its_own_noise() -> None:
    quiet = [make_estimate(run, 1.0, kind=f"quiet-{cell}") for run in range(4) for cell in range(9)]
    loud = [make_estimate(run, math.exp(0.1 * (run % 2)), kind="loud") for run in range(4)]
    noise = estimate_noise(list_differences([*quiet, *loud]))
    assert noise.own["loud"].excess == pytest.approx(0.01)
    assert noise.own["loud"].excess > 5 * noise.between_runs.excess


def test_the_default_floor_is_that_of_nights_of_three_percent() -> None:
    assert assume_noise(is_same_machine=True).between_runs.log_floor == pytest.approx(1.959964 * math.sqrt(2) * 0.03)
    across = assume_noise(is_same_machine=False).between_runs
    assert across.log_variance == pytest.approx(2 * 0.03**2 + 0.03**2)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("measured", "as measured, by 2 identical runs of 3 cells (a, b)."),
        ("default", "the default, since the store has no two identical runs of such cells"),
        ("given", "as given by --floor."),
    ],
)
def test_a_floor_says_whether_it_was_measured(source: Source, words: str) -> None:
    noise = NoiseDescription(
        device="cpu",
        is_same_machine=True,
        source=source,
        floor=0.087,
        run_ids=("a", "b") if source == "measured" else (),
        num_cells=3,
    )
    assert "Floor 8.70 % for CPU cells: " in describe_noise(noise)
    assert words in describe_noise(noise)

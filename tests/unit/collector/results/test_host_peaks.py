"""One peak per host and run: the denominator of every share of a CPU cell, whatever its own process had measured."""

from typing import Any

import pandas as pd
import pytest

from bench.schema import Cell, Precision, Result
from collector.analysis import analyze_run
from collector.facts import list_doubts
from collector.results.collection import Collection
from collector.results.hosts import list_drifted
from collector.results.summary import summarize_cells
from factories import make_cell, make_environment, make_host_figures, make_result, make_validity
from measured_runs import Collect

PYTORCH = make_cell(batch_size=1)
TENSORFLOW = make_cell(batch_size=1, framework="tensorflow", mode="graph")
# A step of `make_roofline` takes so many operations; here 10 GFLOP/s.
WORK = 10**9
STEP_SECONDS = WORK / 1e10
ACHIEVED = WORK / STEP_SECONDS


def make_repeat(
    repeat: int,
    *figures: float | None,
    cell: Cell = PYTORCH,
    hostname: str = "bench-1",
    num_threads: int = 2,
    **fields: Any,
) -> Result:
    """Return a result whose process found these figures of its host: calculated, before and after the window."""
    defaults: dict[str, Any] = {
        "host_peak": make_host_figures(*figures, framework=cell.framework),
        "environment": make_environment(hostname=hostname, num_threads=num_threads),
        "step_seconds": (STEP_SECONDS,) * 3,
    }
    return make_result(cell, repeat=repeat, **(defaults | fields))


def select_measured(collection: Collection) -> pd.DataFrame:
    """Return the rows without those of planned repeats that were not measured."""
    return collection.results[collection.results["status"] == "ok"]


def list_peaks(collection: Collection) -> list[float]:
    return list(select_measured(collection)["peak_flops_per_second"])


def test_all_results_of_a_host_are_compared_with_its_highest_figure(collect: Collect) -> None:
    collection = collect(
        make_repeat(1, 1.0e11, 1.5e11, 1.4e11),
        make_repeat(2, 1.0e11, None, 2.0e11),  # the fastest
        make_repeat(1, 1.0e11, None, None, cell=TENSORFLOW),
    )
    results = select_measured(collection)
    assert list_peaks(collection) == [2e11, 2e11, 2e11]
    assert list(results["share_of_peak"]) == [ACHIEVED / 2e11] * 3
    assert list(results["min_step_seconds"]) == [WORK / 2e11] * 3
    assert list(results["share_of_roofline"]) == pytest.approx([WORK / 2e11 / STEP_SECONDS] * 3)
    assert set(results["peak_source"]) == {"matrix product in pytorch; the highest of 3 results on this host"}
    summary = summarize_cells(collection)
    assert list(summary["share_of_peak"]) == pytest.approx([0.05, 0.05])


def test_hosts_threads_and_precisions_have_peaks_of_their_own(collect: Collect) -> None:
    half: Precision = "bf16"
    collection = collect(
        make_repeat(1, None, 1e11, None),
        make_repeat(2, None, 2e11, None, hostname="bench-2"),
        make_repeat(3, None, 3e11, None, num_threads=1),
        make_repeat(1, None, 4e11, None, cell=make_cell(precision=half, batch_size=1)),
    )
    assert list_peaks(collection) == [1e11, 2e11, 3e11, 4e11]


@pytest.mark.parametrize(
    ("verdicts", "peak", "expected"),
    [
        ((), 1e11, None),
        # The process found its host slow; the run knows better, and the reader is told.
        (
            ("over-peak",),
            1e11,
            "10% of the host's peak of this run, by the fewest operations that known algorithms need",
        ),
        # Nobody could judge it before: its process had no figure.
        ((), 5e9, "200% of the host's peak of this run, by the fewest operations that known algorithms need"),
    ],
)
def test_the_share_of_the_runs_peak_is_noted_where_the_process_doubted_it(
    verdicts: tuple[str, ...], peak: float, expected: str | None, collect: Collect
) -> None:
    result = make_repeat(1, None, peak, None, validity=make_validity(*verdicts))  # type: ignore[arg-type]
    row = collect(result).results.iloc[0]
    assert row["verdict"] == (verdicts[0] if verdicts else "valid")
    assert (row["notes"] if expected else None) == expected


@pytest.mark.parametrize(("high", "expected"), [(1.09e11, 0), (1.2e11, 1)])
def test_a_host_whose_speed_changed_between_results_is_named(high: float, expected: int, collect: Collect) -> None:
    collection = collect(
        make_repeat(1, 5e11, 1e11, 0.8e11),
        make_repeat(2, 5e11, high, None),
        make_repeat(1, 5e11, 3e11, None, cell=TENSORFLOW),  # another framework's product is another program
    )
    assert len(list_drifted(collection.host_products)) == expected
    doubts = {doubt.code: doubt for doubt in list_doubts(analyze_run(collection))}
    assert ("host-speed" in doubts) == bool(expected)
    if expected:
        text = (
            "on bench-1, matrix products of PyTorch (fp32, 2 threads) ran at 100 to 120 GFLOP/s in 2 results on the "
            "CPU (the faster of two in each), 20.0 % apart"
        )
        assert (doubts["host-speed"].severity, text in doubts["host-speed"].text) == ("beware", True)

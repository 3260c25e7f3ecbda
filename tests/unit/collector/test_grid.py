"""The grid of a run: what stands where, and every program against every other of its work."""

import math

import pytest
from scipy import stats

from bench.schema import LeftOutCell, Result
from bench.store import Store
from collector.analysis import analyze_run
from collector.grid import describe_ratio, format_ratio, format_spread, make_grid
from factories import make_cell, make_environment, make_failed_result, make_memory, make_result, make_run, make_validity
from measured_runs import TENSORFLOW, Collect, make_repeats, put_and_load
from price_tables import make_price, make_price_table

EAGER, GRAPH = make_cell(), make_cell(framework="tensorflow", mode="graph")
OTHER_TORCH = make_environment(versions={"torch": "2.9.0"})
UNSOUND = {"environment": TENSORFLOW, "validity": make_validity("contaminated")}


def make_pair(graph: tuple[float, ...], eager: tuple[float, ...] = (0.1, 0.101, 0.099)) -> list[Result]:
    return [*make_repeats(EAGER, *eager), *make_repeats(GRAPH, *graph, environment=TENSORFLOW)]


def test_a_ratio_is_welchs_with_the_interval_that_holds_for_all_of_its_baseline(collect: Collect) -> None:
    infer = make_cell(phase="infer")
    others = [*make_repeats(infer, 0.05, 0.051, 0.049)]
    others += make_repeats(
        make_cell(phase="infer", framework="tensorflow", mode="graph"), 0.06, 0.061, 0.062, environment=TENSORFLOW
    )
    graph, eager = (0.12, 0.122, 0.119), (0.1, 0.101, 0.099)
    grid = make_grid(analyze_run(collect(*make_pair(graph, eager), *others)))

    ratio = grid.ratios["PyTorch eager"]["conv6 train", "TensorFlow graph"]

    logs = [[math.log(value) for value in values] for values in (graph, eager)]
    result = stats.ttest_ind(*logs, equal_var=False)
    interval = result.confidence_interval(1 - 0.05 / 2)  # of two ratios over this baseline
    assert grid.baseline == "PyTorch eager"
    assert grid.shared == "batch 64, 32 px"
    assert (ratio.low, ratio.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)), rel=1e-9)
    assert ratio.verdict == "longer"


def test_one_pair_reads_alike_whichever_side_is_the_baseline(collect: Collect) -> None:
    """One undecided pair was "7.3 %" in a table and "-6.8 %" in the map: here both are ratios of time to a baseline."""
    grid = make_grid(analyze_run(collect(*make_pair((0.1, 0.12, 0.102)))))
    (forth,) = grid.ratios["PyTorch eager"].values()
    (back,) = grid.ratios["TensorFlow graph"].values()
    assert forth.estimate is not None
    assert back.estimate is not None
    assert forth.estimate.center * back.estimate.center == pytest.approx(1)
    assert (forth.verdict, back.verdict) == ("undecided", "undecided")
    key, base = ("conv6 train", "TensorFlow graph"), "PyTorch eager"
    assert [describe_ratio(grid, metric, key, base)[0] for metric in grid.metrics[:2]] == ["≈ +7.0 %", "≈ −6.5 %"]


@pytest.mark.parametrize(
    ("results", "reason", "state"),
    [
        ([make_failed_result(GRAPH)], "failed", "failed"),
        ([make_result(GRAPH, environment=TENSORFLOW)], "one-repeat", "ok"),
        (make_repeats(GRAPH, 0.1, 0.1, **UNSOUND), "unsound", "unsound"),
        (make_repeats(make_cell(mode="compiled"), 0.1, 0.11, environment=OTHER_TORCH), "version", "ok"),
    ],
)
def test_a_pair_without_a_verdict_says_why(collect: Collect, results: list[Result], reason: str, state: str) -> None:
    grid = make_grid(analyze_run(collect(*make_repeats(EAGER, 0.1, 0.101, 0.099), *results)))
    (name,) = (name for name in grid.programs if not name.startswith("PyTorch eager"))
    base = next(one for one in grid.programs if one != name)
    ratio = grid.ratios[base]["conv6 train", name]
    assert (ratio.verdict, ratio.reason) == ("none", reason)
    assert grid.places["conv6 train", name].state == state


def test_every_planned_cell_has_its_place(tmp_path_factory: pytest.TempPathFactory) -> None:
    left_out = LeftOutCell(cell=make_cell(device="gpu"), reason="no NVIDIA GPU is visible")
    run = make_run([EAGER, make_cell(phase="infer")], left_out=[left_out], repeats=2)
    results = [*make_repeats(EAGER, 0.1, 0.1), make_failed_result(make_cell(phase="infer"), status="oom")]
    store = Store.open(f"file://{tmp_path_factory.mktemp('store')}")
    grid = make_grid(analyze_run(put_and_load(store, run, results)))
    found = {key: (place.state, place.status) for key, place in grid.places.items()}
    assert found == {
        ("conv6 train", "PyTorch eager"): ("left-out", "no NVIDIA GPU is visible"),
        ("conv6 train", "PyTorch eager, CPU"): ("ok", ""),
        ("conv6 infer", "PyTorch eager, CPU"): ("failed", "1 oom, 1 missing"),
    }


@pytest.mark.parametrize(("factor", "texts"), [(1.2, ["▲ +20", "▼ −16"]), (0.1, ["▼ 10.0× faster", "▲ 10.0×"])])
def test_the_arrow_of_a_view_goes_where_its_ratio_goes(collect: Collect, factor: float, texts: list[str]) -> None:
    grid = make_grid(analyze_run(collect(*make_pair((factor * 0.1, factor * 0.101, factor * 0.099)))))
    for metric, text in zip(grid.metrics, texts, strict=False):
        said, _, ends = describe_ratio(grid, metric, ("conv6 train", "TensorFlow graph"), "PyTorch eager")
        assert said.startswith(text)
        assert ("▲" in said) == (ends[1] > 1)


def test_a_lopsided_interval_is_named_by_its_ends_in_the_unit_of_the_view(collect: Collect) -> None:
    grid = make_grid(analyze_run(collect(*make_pair((0.1, 0.2)))))
    even, lopsided = (grid.places["conv6 train", name].row for name in ("PyTorch eager", "TensorFlow graph"))
    assert format_spread(grid.metrics[0], even) == "±2.5 %"
    # exp(12.706 * ln(2) / 2) = 81.75 times less and more than 141.4 ms and 452.5 samples/s
    assert format_spread(grid.metrics[0], lopsided) == "1.73 to 11,600"
    assert format_spread(grid.metrics[1], lopsided) == "5.54 to 37,000"


def test_costs_are_a_metric_where_there_are_prices(collect: Collect) -> None:
    prices = make_price_table(make_price("dear", 2.0, cpu="Xeon 2.20GHz"), make_price("cheap", 1.0, cpu="Xeon 2.20GHz"))
    grid = make_grid(analyze_run(collect(*make_pair((0.2, 0.202, 0.198))), prices=prices))
    cost, key = grid.metrics[-1], ("conv6 train", "TensorFlow graph")
    seconds = {program: 1000 / 64 * time for program, time in (("PyTorch eager", 0.1), ("TensorFlow graph", 0.2))}
    figures = {place.program: cost.find(place.row) for place in grid.places.values()}
    assert (cost.name, cost.unit.label) == ("cost", "EUR")
    assert figures == pytest.approx(seconds, rel=1e-3)
    assert describe_ratio(grid, cost, key, "PyTorch eager") == ("2.00×", "", ())
    assert [grid.find_best("conv6 train", metric) for metric in (*grid.metrics[:2], cost)] == [{"PyTorch eager"}] * 3


def test_memory_of_the_allocator_is_not_held_against_that_of_a_process(collect: Collect) -> None:
    gpu = make_repeats(make_cell(device="gpu"), 0.1, 0.1, memory=make_memory(peak_memory_allocated_bytes=2**30))
    grid = make_grid(analyze_run(collect(*make_repeats(EAGER, 0.1, 0.1), *gpu)))
    memory = grid.metrics[2]
    assert memory.title == "peak memory (GPU allocator, else RSS)"
    assert describe_ratio(grid, memory, ("conv6 train", "PyTorch eager, CPU"), "PyTorch eager") == ("", "", ())
    assert grid.find_best("conv6 train", memory) == set()


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.0, "+0.0 %"), (1.119, "+11.9 %"), (0.96, "−4.0 %"), (64.6, "64.6×"), (0.1776, "1/5.63×"), (1.996, "+99.6 %")],
)
def test_a_ratio_is_in_percent_up_to_twice_and_a_factor_beyond(ratio: float, text: str) -> None:
    assert format_ratio(ratio) == text

import pandas as pd
import pytest

from collector.plots.measurements import MAX_POINTS, plot_ratios, plot_step_times, thin_series
from collector.plots.style import to_spec


def make_samples(num_warmup, seconds, *, repeat=1):
    times = [("warmup", index, 9.0) for index in range(num_warmup)]
    times += [("timed", index, value) for index, value in enumerate(seconds)]
    return pd.DataFrame(times, columns=["kind", "index", "seconds"]).assign(repeat=repeat)


def list_data(spec):
    """The rows of every data set of a chart."""
    return [row for rows in spec["datasets"].values() for row in rows]


def test_a_short_series_is_drawn_step_by_step_in_ms_around_the_cut():
    series = thin_series(make_samples(2, [0.1, 0.2]))
    assert [(-2, 9000), (-1, 9000), (0, 100), (1, 200)] == list(
        series[["step", "median"]].itertuples(index=False, name=None)
    )


def test_a_long_series_keeps_its_extremes():
    seconds = [0.001] * (3 * MAX_POINTS)
    seconds[40] = 0.5
    series = thin_series(make_samples(0, seconds))
    assert MAX_POINTS == len(series)
    assert (500.0, 1.0) == (series["high"].max(), series["median"].max())
    assert [1.0, 4.0] == series["step"].head(2).to_list()  # the middles of steps 0 to 2 and 3 to 5


def test_repeats_are_thinned_apart():
    samples = pd.concat([make_samples(1, [0.1]), make_samples(3, [0.2], repeat=2)])
    series = thin_series(samples)
    assert {1: [-1, 0], 2: [-3, -2, -1, 0]} == {key: rows["step"].to_list() for key, rows in series.groupby("repeat")}


@pytest.mark.parametrize(
    ("low", "high", "finding"), [(1.1, 1.3, "slower"), (0.7, 0.9, "faster"), (0.9, 1.3, "no difference shown")]
)
def test_a_ratio_is_called_different_only_where_its_interval_excludes_1(low, high, finding):
    pairs = pd.DataFrame({"name": ["a"], "ratio": [(low + high) / 2], "ratio_low": [low], "ratio_high": [high]})
    spec = to_spec(plot_ratios(pairs, better="faster", worse="slower", above_is_better=False))
    assert {finding} == {row["finding"] for row in list_data(spec) if "finding" in row}


@pytest.mark.parametrize(("low", "num_rules"), [(0.2, 1), (float("nan"), 0)])
def test_step_times_are_drawn_in_ms_and_a_missing_interval_is_not_drawn(low, num_rules):
    rows = pd.DataFrame(
        {
            "variant": ["PyTorch eager"],
            "framework": ["pytorch"],
            "median_step_seconds": [0.25],
            "interval_low_seconds": [low],
            "interval_high_seconds": [low + 0.1],
        }
    )
    repeats = rows[["variant", "framework", "median_step_seconds"]].assign(repeat=1)
    spec = to_spec(plot_step_times(rows, repeats))
    assert {250.0} == {row["median"] for row in list_data(spec) if "median" in row}
    assert num_rules == sum(layer["mark"]["type"] == "rule" for layer in spec["layer"])

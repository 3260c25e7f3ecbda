"""The plot of a forecast."""

from itertools import pairwise

import vl_convert

from collector.forecast.fit import fit_forecast
from collector.forecast.gpu_table import load_gpu_table, make_gpu_series
from collector.forecast.series import DatedValues, make_series
from collector.report.plots.forecast import make_value_axis, plot_forecast
from memory_tables import make_bending_series, make_noisy_table


def test_plot_names_the_gpus_and_leaves_refused_years_out() -> None:
    forecast = fit_forecast(make_bending_series(), year=2026)
    spec = plot_forecast(forecast).to_dict()
    lines, points = (spec["datasets"][spec["layer"][place]["data"]["name"]] for place in (1, 3))
    drawn = {row["year"] for row in lines if row["candidate"] == "polynomial 2" and row["value"] is not None}
    assert max(drawn) < 2023
    assert set(range(2004, 2021)) <= drawn
    assert "GPU 2012" in [row["name"] for row in points]
    assert spec["width"] == "container"


def test_band_is_the_winners_and_every_interval_of_the_year_asked_for_has_a_bar() -> None:
    forecast = fit_forecast(make_gpu_series(make_noisy_table()), year=2025)
    spec = plot_forecast(forecast).to_dict()
    band, bars = (spec["datasets"][spec["layer"][place]["data"]["name"]] for place in (0, 2))
    assert {row["candidate"] for row in band} == {forecast.ranking.winner}
    assert [row["year"] for row in band] == [2024, 2025]
    asked = forecast.asked
    assert [row["candidate"] for row in bars] == asked.loc[asked["upper"].notna(), "candidate"].tolist()
    weights = {row["interval"]: row["weight"] for row in bars}
    assert weights["calibrated"] > weights.get("own", 0)


def test_picture_says_whom_the_data_are_from() -> None:
    rows = make_gpu_series(make_noisy_table()).releases
    named = DatedValues(rows=rows, quantity="memory", unit="GB", source="x.csv", attribution="Somebody, CC BY")
    spec = plot_forecast(fit_forecast(make_series(named, "frontier"), year=2025)).to_dict()
    assert spec["title"]["text"] == ["Data: Somebody, CC BY"]


def test_axis_of_values_far_apart_counts_in_powers_of_ten() -> None:
    assert '"domain": [2.0, 512.0]' in make_value_axis((3.0, 500.0), "GB").to_json(indent=None)
    assert '"domain": [100000000000000.0, 1e+27]' in make_value_axis((2e14, 5e26), "FLOP").to_json(indent=None)


def test_plot_of_the_shipped_table_renders() -> None:
    chart = plot_forecast(fit_forecast(make_gpu_series(load_gpu_table()), year=2030)).properties(width=300)
    assert vl_convert.vegalite_to_png(chart.to_json()).startswith(b"\x89PNG")


def test_names_of_bars_stand_so_far_apart_that_they_do_not_touch() -> None:
    spec = plot_forecast(fit_forecast(make_gpu_series(load_gpu_table()), year=2030)).to_dict()
    lines, bars = (spec["datasets"][spec["layer"][place]["data"]["name"]] for place in (1, 2))
    dates = sorted(row["date"] for row in bars)
    all_years = dates[-1] - min(row["date"] for row in lines)
    pixels = [300 * (later - earlier) / all_years for earlier, later in pairwise(dates)]
    assert len(pixels) >= 2
    assert min(pixels) >= 9  # of the narrowest plot; the names have 9 pixels

"""The plot of a forecast."""

import vl_convert

from collector.forecast.fit import fit_forecast
from collector.forecast.gpu_table import load_gpu_table
from collector.report.plots.forecast import plot_forecast
from memory_tables import make_bending_table, make_table


def test_plot_names_the_gpus_and_leaves_refused_years_out() -> None:
    forecast = fit_forecast(make_bending_table(), year=2026)
    spec = plot_forecast(forecast).to_dict()
    bands, lines, points = (spec["datasets"][layer["data"]["name"]] for layer in spec["layer"])
    drawn = {row["year"] for row in lines if row["candidate"] == "polynomial 2" and row["memory_gb"] is not None}
    assert drawn == set(range(2004, 2023))
    assert "GPU 2012" in [row["name"] for row in points]
    assert set(bands[0]) == {"candidate", "year", "date", "memory_gb", "lower_gb", "upper_gb"}
    assert spec["width"] == "container"


def test_band_that_reaches_zero_is_drawn_to_the_edge_of_the_plot() -> None:
    years = list(range(2008, 2020))
    forecast = fit_forecast(make_table(years, [6.0, 1.0, 7.0, 2.0] * 3), year=2020)
    spec = plot_forecast(forecast).to_dict()
    bands = spec["datasets"][spec["layer"][0]["data"]["name"]]
    floor_gb = spec["layer"][0]["encoding"]["y"]["scale"]["domain"][0]
    assert floor_gb == 0.5  # one power of 2 below the least memory, 1 GB
    assert floor_gb in [row["memory_gb"] for row in bands if row["candidate"] == "polynomial 2"]


def test_plot_of_the_shipped_table_renders() -> None:
    chart = plot_forecast(fit_forecast(load_gpu_table(), year=2030)).properties(width=300)
    assert vl_convert.vegalite_to_png(chart.to_json()).startswith(b"\x89PNG")

"""Make the charts that the page fills with the steps of the cell whose details it shows."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pandas as pd

from collector.report.figure import Figure, make_figure
from collector.report.plots.measurements import DISTRIBUTION_PIXELS, plot_distributions, plot_step_series

QUANTILE_NAMES = ("least", "p5", "q1", "median", "q3", "p95", "greatest")


@cache
def make_detail_figures() -> Mapping[str, Figure]:
    """Return `series` and `distribution`, each with one row of data that the page replaces."""
    point = {"repeat": 1, "step": 0, "median": 1.0, "low": 1.0, "high": 1.0, "cell_id": "", "panel": ""}
    quantiles = {"repeat": 1, **dict.fromkeys(QUANTILE_NAMES, 1.0)}
    return {
        "series": make_figure(plot_step_series(pd.DataFrame([point])), ""),
        "distribution": replace(
            make_figure(plot_distributions(pd.DataFrame([quantiles])), ""), row_pixels=DISTRIBUTION_PIXELS
        ),
    }

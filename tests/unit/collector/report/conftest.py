"""Reports that several modules of tests read."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bench.schema import LeftOutCell
from collector.forecast.fit import fit_forecast
from collector.forecast.gpu_table import load_gpu_table, make_gpu_series
from factories import RUN_ID, make_cell
from report_pages import make_full_run, put_and_render

Render = Callable[..., Path]


@pytest.fixture
def render(tmp_path: Path) -> Render:
    return partial(put_and_render, tmp_path)


@pytest.fixture(scope="session")
def full_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run that has something for every section."""
    left_out = LeftOutCell(cell=make_cell(model="resnet18", device="gpu"), reason="no NVIDIA GPU is visible")
    return put_and_render(
        tmp_path_factory.mktemp("full"),
        *make_full_run(),
        left_out=[left_out],
        strange_keys=[f"runs/{RUN_ID}/results/notes.txt"],
        forecast=fit_forecast(make_gpu_series(load_gpu_table(None)), year=2030),
    )

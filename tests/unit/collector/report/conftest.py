"""Reports that several modules of tests read."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from bench.schema import LeftOutCell
from bench.store import Store
from browser_visits import PATIENCE_MILLISECONDS
from collector.analysis import Analysis, analyze_run
from collector.forecast.fit import fit_forecast
from collector.forecast.gpu_table import load_gpu_table, make_gpu_series
from collector.report.html import make_page
from collector.results.load import load_run
from factories import RUN_ID, make_cell, make_environment, make_failed_result, make_gpu, make_result
from report_pages import HOSTILE, make_full_run, put_and_render
from synthetic_runs import Size, put_run

Render = Callable[..., Path]
CHROMIUM = Path("/usr/bin/chromium")


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


@pytest.fixture(scope="session")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    store = Store.open(f"file://{tmp_path_factory.mktemp('synthetic')}")
    return analyze_run(load_run(store, put_run(store, Size(num_cells=48, num_steps=20)).run_id))


@pytest.fixture(scope="session")
def report(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(make_page(analysis))
    return path


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run whose every text that others write would run a script if it were HTML."""
    environment = make_environment(cpu_model=HOSTILE, versions={"torch": HOSTILE}, gpus=(make_gpu(name=HOSTILE),))
    table = load_gpu_table(None)
    hostile_table = table.assign(name=HOSTILE)
    hostile_table.attrs = table.attrs
    return put_and_render(
        tmp_path_factory.mktemp("hostile"),
        make_result(repeat=1, environment=environment),
        make_failed_result(repeat=2, message=HOSTILE, stderr_tail=HOSTILE),
        left_out=[LeftOutCell(cell=make_cell(batch_size=1), reason=HOSTILE)],
        user=HOSTILE,
        forecast=fit_forecast(make_gpu_series(hostile_table), year=2030),
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--headless", "--disable-gpu"]
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=PATIENCE_MILLISECONDS)

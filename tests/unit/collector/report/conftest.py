"""Reports that several modules of tests read."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from bench.schema import LeftOutCell
from factories import RUN_ID, make_cell, make_environment, make_failed_result, make_gpu, make_result
from report_pages import HOSTILE, PATIENCE_MILLISECONDS, make_full_run, put_and_render

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="session")
def full_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run that has something for most sections."""
    left_out = LeftOutCell(cell=make_cell(model="resnet18", device="gpu"), reason="no NVIDIA GPU is visible")
    return put_and_render(
        tmp_path_factory.mktemp("full"),
        *make_full_run(),
        left_out=[left_out],
        strange_keys=[f"runs/{RUN_ID}/results/notes.txt"],
    )


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run whose every text that others write would run a script if it were HTML."""
    environment = make_environment(cpu_model=HOSTILE, versions={"torch": HOSTILE}, gpus=(make_gpu(name=HOSTILE),))
    return put_and_render(
        tmp_path_factory.mktemp("hostile"),
        make_result(repeat=1, environment=environment),
        make_failed_result(repeat=2, message=HOSTILE, stderr_tail=HOSTILE),
        left_out=[LeftOutCell(cell=make_cell(batch_size=1), reason=HOSTILE)],
        user=HOSTILE,
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--headless", "--disable-gpu"]
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=PATIENCE_MILLISECONDS)

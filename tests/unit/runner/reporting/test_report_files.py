"""What goes into a run's report."""

from pathlib import Path

import pytest

from bench.schema import LeftOutCell
from bench.store import Store
from collector.nights.records import ChangeHistory
from collector.results.load import load_run
from factories import make_cell, make_result, make_run, put_documents
from runner.reporting.report_files import fit_forecast, make_analyzer

CPU, GPU = make_cell(), make_cell(device="gpu")


@pytest.mark.parametrize(
    ("has_gpu", "is_forecast_asked", "expected"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_the_memory_of_gpus_is_forecast_where_somebody_asked_for_gpus(
    tmp_path: Path, has_gpu: bool, is_forecast_asked: bool, expected: bool
) -> None:
    """A matrix that names GPUs did, also on a machine without any."""
    left_out = [LeftOutCell(cell=GPU, reason="no NVIDIA GPU is visible on this machine")] if has_gpu else []
    store = Store.open(f"file://{tmp_path}")
    run = make_run([CPU], repeats=1, run_id="mine", left_out=left_out)
    put_documents(store, run, [make_result(CPU, run_id="mine")])
    analyze = make_analyzer(fit_forecast(2030), is_forecast_asked=is_forecast_asked)
    assert (analyze(load_run(store, "mine"), ChangeHistory()).forecast is not None) is expected

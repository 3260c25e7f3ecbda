"""The results under docs/results/: every document counts, and is of the matrix beside it."""

from pathlib import Path
from statistics import median

import pandas as pd
import pytest

from bench.schema import read_result
from bench.store import Store, result_key
from collector.results.collection import Collection
from collector.results.frames import list_rows
from collector.results.load import load_runs
from collector.results.summary import summarize_cells
from runner.matrix.expansion import load_matrix

RESULTS = Path(__file__).parents[4] / "docs" / "results"
H100, H200 = "2026-11-21-h100", "2026-11-21-h200"
H100_GPU, H100_CPU = "study-gpu-20261121-072659-442c", "study-cpu-20261121-070906-59bf"
SCALING = "scaling-20261121-065706-e88e"
H200_GPU = "study-h200-2"


@pytest.mark.parametrize(
    ("folder", "num_ok"), [(H100, {H100_GPU: 31, H100_CPU: 16, SCALING: 9}), (H200, {H200_GPU: 54})]
)
def test_every_committed_document_is_of_the_present_contract(folder: str, num_ok: dict[str, int]) -> None:
    run_ids = sorted(path.name for path in (RESULTS / folder / "runs").iterdir())
    collections = load_runs(Store.open((RESULTS / folder).as_uri()), run_ids)
    found = {c.run.run_id: (len(c.skipped), int((c.results["status"] == "ok").sum())) for c in collections}
    assert found == {run_id: (0, count) for run_id, count in num_ok.items()}


@pytest.mark.parametrize(
    ("folder", "matrix", "run_id"),
    [
        (H100, "gpu.yaml", H100_GPU),
        (H100, "cpu.yaml", H100_CPU),
        (H100, "scaling.yaml", SCALING),
        (H200, "gpu.yaml", H200_GPU),
    ],
)
def test_a_committed_matrix_has_the_cells_of_its_committed_run(folder: str, matrix: str, run_id: str) -> None:
    (collection,) = load_runs(Store.open((RESULTS / folder).as_uri()), (run_id,))
    assert collection.run.cells == load_matrix(str(RESULTS / folder / matrix)).cells


@pytest.mark.parametrize(
    ("cell", "recorded", "expected"),
    [
        ("conv6-tensorflow-cpu-train-fp32-graph-b64-88769749", 0.99, 0.71),
        ("conv6-pytorch-cpu-train-fp32-eager-b64-0ca1252c", 0.44, 0.31),
        ("resnet18-tensorflow-cpu-train-fp32-graph-b64-4c404e36", 0.61, 0.45),
    ],
)
def test_shares_of_the_xeon_have_one_denominator(cell: str, recorded: float, expected: float) -> None:
    """The records hold the highest peak known at their time, which rose from 1.53 to 2.33 TFLOP/s within the run."""
    (collection,) = load_runs(Store.open((RESULTS / H100).as_uri()), (H100_CPU,))
    keys = [
        result_key(H100_CPU, cell, int(row["repeat"]), str(row["attempt"]))
        for row in list_rows(select_valid(collection, cell))
    ]
    rooflines = [read_result((RESULTS / H100 / key).read_bytes()).roofline for key in keys]
    shares = [roofline.share_of_peak for roofline in rooflines if roofline is not None and roofline.share_of_peak]
    assert round(median(shares), 2) == recorded
    (row,) = summarize_cells(collection).query("cell_id == @cell").to_dict("records")
    assert round(row["share_of_peak"], 2) == expected
    assert collection.results["peak_flops_per_second"].nunique() == 1


def select_valid(collection: Collection, cell_id: str) -> pd.DataFrame:
    results = collection.results
    return results[(results["cell_id"] == cell_id) & (results["verdict"] == "valid")]

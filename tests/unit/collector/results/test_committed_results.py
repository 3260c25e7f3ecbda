"""The results under docs/results/: every document counts, and the pages of claims follow from them."""

from pathlib import Path

import pytest

from bench.store import Store
from collector.claims.page import write_claims_page
from collector.results.load import load_runs
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


# The pages hold the intervals of the bootstrap that was used when they were written. strict: once they are written
# again, this mark must go.
@pytest.mark.xfail(strict=True, reason="docs/results/*/claims.md were written before intervals were Student's t")
@pytest.mark.parametrize(("folder", "run_ids"), [(H100, (H100_GPU, H100_CPU)), (H200, (H200_GPU,))])
def test_the_page_of_claims_is_what_the_committed_results_say(
    folder: str, run_ids: tuple[str, ...], tmp_path: Path
) -> None:
    collections = load_runs(Store.open((RESULTS / folder).as_uri()), run_ids)
    write_claims_page(collections, tmp_path / "claims.md")
    assert (tmp_path / "claims.md").read_text() == (RESULTS / folder / "claims.md").read_text()

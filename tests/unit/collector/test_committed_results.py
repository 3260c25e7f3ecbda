"""The results under docs/results/: every document counts, and the page of claims follows from them."""

from pathlib import Path

from bench.store import Store
from collector.claims import write_claims_page
from collector.load import load_runs

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "2026-11-21-h100"
STUDY = ("study-gpu-20261121-072659-442c", "study-cpu-20261121-070906-59bf")


def test_every_committed_document_is_of_the_present_contract() -> None:
    run_ids = sorted(path.name for path in (RESULTS / "runs").iterdir())
    collections = load_runs(Store.open(RESULTS.as_uri()), run_ids)
    found = {c.run.run_id: (len(c.skipped), int((c.results["status"] == "ok").sum())) for c in collections}
    assert {STUDY[0]: (0, 31), STUDY[1]: (0, 16), "scaling-20261121-065706-e88e": (0, 9)} == found


def test_the_page_of_claims_is_what_the_committed_results_say(tmp_path: Path) -> None:
    collections = load_runs(Store.open(RESULTS.as_uri()), STUDY)
    write_claims_page(collections, tmp_path / "claims.md")
    assert (RESULTS / "claims.md").read_text() == (tmp_path / "claims.md").read_text()

"""The published results, through the data set and back: what a plain reading of their JSON gives, to the last digit."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from bench.store import Store
from collector.results.collection import Collection
from collector.results.load import load_run

RESULTS = Path(__file__).parents[4] / "docs" / "results"
RUNS = sorted(path.parent for path in RESULTS.glob("*/runs/*/run.json"))


def load_through_tables(run: Path, directory: Path) -> Collection:
    """Return a run whose rows were all read back from Parquet files."""
    shutil.copytree(run, directory / "runs" / run.name)
    store = Store.open(f"file://{directory}")
    load_run(store, run.name, writes_tables=True)
    return load_run(store, run.name)


def choose_documents(run: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the document of each repeat that counts: the earliest ok one, else the latest."""
    documents = [json.loads(path.read_bytes()) for path in run.glob("results/*/*.json")]
    chosen: dict[tuple[str, int], dict[str, Any]] = {}
    for document in sorted(documents, key=lambda found: (found["started_at"], found["attempt"])):
        key = document["cell_id"], document["repeat"]
        if key not in chosen or chosen[key]["status"] != "ok":
            chosen[key] = document
    return chosen


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_step_is_as_in_the_documents(run: Path, tmp_path: Path) -> None:
    samples = load_through_tables(run, tmp_path).samples
    found = {key: rows["seconds"].to_list() for key, rows in samples.groupby(["cell_id", "repeat", "tenant", "kind"])}
    expected = {}
    for (cell_id, repeat), document in choose_documents(run).items():
        others = document.get("tenancy") or {"tenants": []}
        by_tenant = {tenant["tenant"]: tenant["samples"] for tenant in others["tenants"]} | {0: document["samples"]}
        for tenant, series in by_tenant.items():
            for kind, name in (("warmup", "warmup_step_seconds"), ("timed", "step_seconds")):
                if series and series[name]:
                    expected[cell_id, repeat, tenant, kind] = series[name]
    assert found == expected

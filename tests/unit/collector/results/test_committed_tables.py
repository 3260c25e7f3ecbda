"""The published results, through the data set and back: what a plain reading of their JSON gives, to the last digit."""

import json
import shutil
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pandas as pd
import pytest

from bench.store import Store
from collector.results.collection import Collection
from collector.results.load import load_run

RESULTS = Path(__file__).parents[4] / "docs" / "results"
RUNS = sorted(path.parent for path in RESULTS.glob("*/runs/*/run.json"))
# As the documents have them, under their own names: by the part of the document.
PARTS = {
    "cell": ("model", "framework", "device", "phase", "precision", "mode", "batch_size", "input_size", "seed"),
    "phases": ("import_seconds", "build_seconds", "first_step_seconds", "warmup_seconds", "steady_seconds"),
    "memory": ("peak_rss_bytes", "peak_memory_allocated_bytes", "peak_memory_reserved_bytes"),
    "roofline": ("flops_per_step", "min_bytes_per_step"),
    "environment": ("cpu_model", "num_threads", "python_version", "hostname"),
}


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
def test_rows_are_what_the_documents_say(run: Path, tmp_path: Path) -> None:
    collection = load_through_tables(run, tmp_path)
    documents = choose_documents(run)
    rows = {(row["cell_id"], row["repeat"]): row for row in collection.results.to_dict("records")}
    assert {key for key, row in rows.items() if row["status"] != "missing"} == set(documents)
    for key, document in documents.items():
        row = rows[key]
        assert row["attempt"] == document["attempt"]
        for part, names in PARTS.items():
            for name in names:
                expected = (document[part] or {}).get(name)
                assert pd.isna(row[name]) if expected is None else row[name] == expected, name
        if document["samples"]:
            steps = document["samples"]["step_seconds"]
            assert (row["median_step_seconds"], row["mean_step_seconds"]) == (median(steps), fmean(steps))
            # The mean stands for all repeats of a cell of which one is on two levels.
            by_mean = {
                found["cell_id"]
                for found in documents.values()
                if (found["samples"] or {}).get("summarized_by") == "mean"
            }
            center = fmean(steps) if key[0] in by_mean else median(steps)
            assert row["center_step_seconds"] == center
            assert row["achieved_flops_per_second"] == pytest.approx(row["flops_per_step"] / center, rel=1e-12)


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

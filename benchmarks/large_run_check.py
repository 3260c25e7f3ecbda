"""Checks what a run of large_run.py left in its folder: each planned repeat once, and all of them in the collection.

python benchmarks/large_run_check.py FOLDER/store large
"""

import argparse
import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.schema import read_run  # noqa: E402
from bench.store import Store, parse_result_key, results_prefix, run_key  # noqa: E402
from collector.results.load import load_run  # noqa: E402


def main() -> None:
    """Print the figures as JSON. Exit with 1 if a repeat is missing, twice there, or not in the collection as ok."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("run_id")
    arguments = parser.parse_args()
    store = Store.open(f"file://{arguments.store.absolute()}")
    figures = compare_with_plan(store, arguments.run_id) | read_collection(store, arguments.run_id)
    is_complete = figures["planned"] == figures["records"] == figures["repeats_with_a_record"]
    is_complete &= figures["planned"] == figures["collected_ok"] and figures["cells"] == figures["collected_cells"]
    print(json.dumps(figures))
    print("complete: each repeat has one record, and all are in the collection" if is_complete else "NOT COMPLETE")
    sys.exit(0 if is_complete else 1)


def compare_with_plan(store: Store, run_id: str) -> dict[str, int]:
    """Return the numbers of planned cells and repeats, of records, and of planned repeats that have one at least.

    A container that ends well leaves a record under its own attempt: a repeat that was measured twice has two.
    """
    run = read_run(store.get(run_key(run_id)))
    planned = {(cell.cell.cell_id, repeat) for cell in run.cells for repeat in range(1, cell.repeats + 1)}
    keys = map(parse_result_key, store.list_keys(results_prefix(run_id)))
    records = Counter((key.cell_id, key.repeat) for key in keys if key is not None)
    return {
        "cells": len(run.cells),
        "planned": len(planned),
        "records": records.total(),
        "repeats_with_a_record": len(planned & records.keys()),
    }


def read_collection(store: Store, run_id: str) -> dict[str, float]:
    """Collect the run; return how many cells and repeats are in it and count, and what that took of time and memory."""
    start = time.monotonic()
    collection = load_run(store, run_id)
    ok = collection.results[collection.results["status"] == "ok"]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "collected_cells": ok["cell_id"].nunique(),
        "collected_ok": len(ok),
        "skipped": len(collection.skipped),
        "seconds": round(time.monotonic() - start, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "mib_at_most": round(usage.ru_maxrss / 1024),
    }


if __name__ == "__main__":
    main()

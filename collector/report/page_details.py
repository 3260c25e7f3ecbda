"""Gather what the details of a cell show on demand: its repeats with their conditions and logs, its environments."""

from typing import Any

import pandas as pd

from bench.store import results_prefix
from collector.report.failures import MAX_STDERR_CHARACTERS
from collector.report.packing import EXACT_DIGITS, NUM_DRAWN_DIGITS, Packed, Pools, pack_column, pack_frame
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS
from collector.tables.environments import describe_environment
from collector.units import NOT_THERE

MAX_FULL_REPEATS = 2_000
"""Repeats up to which the page has every column of results.parquet; of more it has DETAIL_COLUMNS."""
MAX_LOG_CHARACTERS = 2_000_000
"""Characters of logs in a page, shared by the repeats that did not end ok: logs are compressed to about a tenth."""
DETAIL_COLUMNS = (
    *("cell_id", "repeat", "attempt", "num_attempts", "status", "started_at", "finished_at"),
    *("first_step_seconds", "warmup_seconds", "steady_seconds", "reached_steady", "num_steps_taken"),
    *("center_step_seconds", "summarized_by", "window_samples_per_s", "peak_rss_bytes"),
    *("peak_memory_allocated_bytes", "verdict", "verdict_reasons", "unchecked", "notes"),
    *("gpu_sm_clock_mhz", "gpu_sm_clock_share", "gpu_max_temperature_celsius", "gpu_mean_power_watts"),
    *("cpu_own_cores", "cpu_other_cores", "environment_id", "hostname", "gpu_uuid", "node_name", "instance_type"),
    *("error_kind", "error_message", "exit_code", "signal", "stderr_tail"),
)


def pack_details(collection: Collection, pools: Pools) -> Packed:
    """Return the planned repeats of all cells, the environments in words, and what of the run was left out here."""
    results, is_full = collection.results, len(collection.results) <= MAX_FULL_REPEATS
    # The fields of the cell are said once, with the cell.
    names = [name for name in results if name not in CELL_COLUMNS and name != "run_id"] if is_full else DETAIL_COLUMNS
    rows = results[[name for name in names if name in results]]
    shown, num_characters = shorten_logs(rows)
    packed = pack_frame(shown, num_digits=EXACT_DIGITS if is_full else NUM_DRAWN_DIGITS, pools=pools)
    cells = {planned.cell.cell_id: planned for planned in collection.run.cells}
    documents = [_describe_plan(cells[cell_id]) for cell_id in dict.fromkeys(results["cell_id"])]
    return packed | {
        "is_full": is_full,
        "num_log_characters": num_characters,
        "prefix": results_prefix(collection.run.run_id),
        "plans": {name: pack_column([document[name] for document in documents], pools=pools) for name in documents[0]}
        if documents
        else {},
        "environments": {
            name: {key: text for key, text in describe_environment(environment).items() if text != NOT_THERE}
            for name, environment in collection.environments.items()
        },
    }


def shorten_logs(rows: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return `rows` with the end of each log, and how many characters of it at most."""
    num_logs = int(rows["stderr_tail"].notna().sum())
    num_characters = min(MAX_STDERR_CHARACTERS, MAX_LOG_CHARACTERS // max(1, num_logs))
    return rows.assign(stderr_tail=rows["stderr_tail"].str.slice(-num_characters)), num_characters


def _describe_plan(planned: Any) -> dict[str, Any]:
    """Return the fields of a planned cell, as its document has them, and how often it was to be measured.

    `not_recorded`: the fields that the document lacks, as an older version of the tool wrote it: it did none of what
    they say, and their defaults, with which the document is read, say nothing of it.
    """
    fields: dict[str, Any] = planned.cell.model_dump(mode="json")
    absent = [name for name in fields if name not in planned.cell.model_fields_set]
    known = fields | dict.fromkeys(absent)
    return {"cell_id": planned.cell.cell_id} | known | {"repeats": planned.repeats, "not_recorded": absent}

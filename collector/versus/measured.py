"""Flatten what several runs measured into rows that can be selected by cell, machine, software and image."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from bench.schema import Environment
from collector.results.cell_repeats import SOUND_VERDICTS
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS

Row = dict[str, Any]

COLUMNS = (
    "run_id",
    "cell_id",
    "repeat",
    "status",
    "started_at",
    *CELL_COLUMNS,
    "verdict",
    "error_message",
    "environment_id",
    "hardware_id",
    "cpu_model",
    "num_threads",
    "gpu_name",
    "driver_version",
    "python_version",
    "framework_version",
    "instance_type",
    "region",
    "zone",
    "is_spot",
    "image_id",
    "kubelet_version",
    "cpu_manager_policy",
    "hostname",
    "gpu_uuid",
    "boot_id",
    "booted_at",
    "lasting_ids",
    "host",
    "machine",
    "center_step_seconds",
    "mean_step_seconds",
    "summarized_by",
    "pipelined_step_seconds",
    "peak_rss_bytes",
    "peak_memory_allocated_bytes",
    "cpu_energy_per_sample_joules",
    "gpu_energy_per_sample_joules",
    "gpu_power_limit_watts",
)
"""What is read of the results. A row has None where a value is missing, and the columns that `_describe_run` adds."""


def list_measured(collections: Iterable[Collection]) -> list[Row]:
    """Return a row per planned repeat of all runs: COLUMNS, and `kernel`, `revision`, `image` and `run_started`."""
    return [row for collection in collections for row in _list_run(collection)]


def _list_run(collection: Collection) -> Iterator[Row]:
    frame = collection.results[list(COLUMNS)].astype(object)
    rows = frame.where(pd.notna(frame), None).to_dict("records")
    for row in rows:
        yield {str(name): value for name, value in row.items()} | _describe_run(collection, row)


def _describe_run(collection: Collection, row: Mapping[Any, Any]) -> Row:
    environment: Environment | None = collection.environments.get(row["environment_id"])
    return {
        "kernel": environment.kernel if environment else None,
        "revision": environment.git_revision if environment else None,
        "image": row["image_id"] or (environment.image if environment else None),
        "run_started": collection.run.created_at,
    }


def unify_centers(rows: Iterable[Row]) -> None:
    """Have the mean of the steps stand for every repeat of a cell that was on two levels in any of the runs.

    Within a run it is so already (collector.results.centers).
    """
    rows = list(rows)
    on_levels = {row["cell_id"] for row in rows if row["summarized_by"] == "mean" and row["verdict"] in SOUND_VERDICTS}
    for row in rows:
        if row["cell_id"] in on_levels and row["mean_step_seconds"] is not None:
            row["center_step_seconds"], row["summarized_by"] = row["mean_step_seconds"], "mean"

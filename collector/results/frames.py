"""Define the columns of the tidy tables, and fill those that follow from one result. Base units only."""

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from bench.registry import FRAMEWORKS
from bench.schema import Environment, Failure, Framework, Memory, Phases, Result, Samples
from collector.results.conditions import CONDITION_COLUMNS, VERDICT_COLUMNS, describe_conditions
from collector.results.hosts import join_ids, name_machine
from collector.results.identity import identify_environment, identify_hardware
from collector.results.placements import PLACEMENT_COLUMNS

Row = dict[str, Any]
Columns = Mapping[str, str]

CELL_COLUMNS: Columns = {
    "model": "str",
    "framework": "str",
    "device": "str",
    "phase": "str",
    "precision": "str",
    "mode": "str",
    "num_gpus": "int64",
    "batch_size": "int64",
    "input_size": "int64",
    "num_classes": "Int64",
    "data_dir": "str",
    "tenants": "int64",
    "sharing": "str",
    "neighbour": "str",
    "num_warmup_steps": "int64",
    "max_warmup_seconds": "float64",
    "num_steps": "int64",
    "min_seconds": "float64",
    "sampling_seconds": "float64",
    "pipelined_seconds": "float64",
    "sustain_seconds": "float64",
    "num_profiled_steps": "int64",
    "seed": "int64",
}
DURATION_COLUMNS: Columns = dict.fromkeys(Phases.model_fields, "float64")
MEMORY_COLUMNS: Columns = dict.fromkeys(Memory.model_fields, "Int64")
ENVIRONMENT_COLUMNS: Columns = {
    "environment_id": "str",
    "hardware_id": "str",
    "cpu_model": "str",
    "num_threads": "Int64",
    "gpu_name": "str",
    "driver_version": "str",
    "python_version": "str",
    "framework_version": "str",
    "cuda_graph": "boolean",
}
# What was measured beside the timed window's steps: throughput as people train, speed that lasts, waits for data.
PACE_COLUMNS: Columns = {
    "pipelined_step_seconds": "float64",
    "pipelined_samples_per_s": "float64",
    "first_sustained_step_seconds": "float64",
    "settled_step_seconds": "float64",
    "flat_after_seconds": "float64",
    "sustained_seconds": "float64",
    "data_wait_share": "float64",
}
MACHINE_COLUMNS: Columns = {
    "hostname": "str",
    "gpu_uuid": "str",
    "boot_id": "str",
    "booted_at": "datetime64[us, UTC]",
    "lasting_ids": "str",
    "host": "str",
    "machine": "str",
}
"""Which machine a repeat ran on. Several GPUs and ids are joined; see `collector.results.hosts` for `host` and
`machine`, which depend on the other results: in the rows of the data set they are as one result alone gives them."""
RESULT_COLUMNS: Columns = {
    "run_id": "str",
    "cell_id": "str",
    "repeat": "int64",
    "attempt": "str",
    "num_attempts": "int64",
    "status": "str",
    **CELL_COLUMNS,
    "started_at": "datetime64[us, UTC]",
    "finished_at": "datetime64[us, UTC]",
    "written_by": "str",
    **DURATION_COLUMNS,
    "num_warmup_steps_taken": "Int64",
    "num_steps_taken": "Int64",
    "reached_steady": "boolean",
    "median_step_seconds": "float64",
    "mean_step_seconds": "float64",
    "center_step_seconds": "float64",
    "summarized_by": "str",
    "window_samples_per_s": "float64",
    **PACE_COLUMNS,
    **MEMORY_COLUMNS,
    **VERDICT_COLUMNS,
    **CONDITION_COLUMNS,
    **ENVIRONMENT_COLUMNS,
    **PLACEMENT_COLUMNS,
    **MACHINE_COLUMNS,
    "error_kind": "str",
    "error_message": "str",
    "exit_code": "Int64",
    "signal": "str",
    "stderr_tail": "str",
}
SAMPLE_COLUMNS: Columns = {
    "cell_id": "str",
    "repeat": "int64",
    "tenant": "int64",
    "kind": "str",
    "index": "int64",
    "seconds": "float64",
    "device_seconds": "float64",
}
TENANT_COLUMNS: Columns = {
    "run_id": "str",
    "cell_id": "str",
    "repeat": "int64",
    "attempt": "str",
    "tenant": "int64",
    "alone_cell_id": "str",
    **{name: CELL_COLUMNS[name] for name in ("model", "phase", "precision", "mode", "batch_size", "input_size")},
    "status": "str",
    "window_seconds": "float64",
    "lateness_seconds": "float64",
    "num_warmup_steps_taken": "Int64",
    "num_steps_taken": "Int64",
    "window_samples_per_s": "float64",
    "mean_step_seconds": "float64",
    **MEMORY_COLUMNS,
    "device_memory_bytes": "Int64",
    "error_kind": "str",
    "error_message": "str",
}
"""One row per tenant of an attempt that had several."""
# The package whose version names a framework's version.
FRAMEWORK_PACKAGES: dict[Framework, str] = {name: framework.package for name, framework in FRAMEWORKS.items()}
MISSING_REASON = "no result was found"


def make_frame(rows: list[Row], columns: Columns) -> pd.DataFrame:
    """Return `rows` as a DataFrame with exactly `columns` (name to dtype); a field that a row lacks is missing."""
    return pd.DataFrame(
        {name: pd.Series([row.get(name) for row in rows], dtype=dtype) for name, dtype in columns.items()}
    )


def list_rows(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of `frame`, the inverse of `make_frame`. A missing integer or boolean is None.

    Whole columns become Python values at once: `DataFrame.to_dict` takes each value by itself, up to eight times as
    long.
    """
    if frame.columns.empty or frame.index.empty:
        return [{} for _ in frame.index]
    columns = {str(name): _list_values(column) for name, column in frame.items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _list_values(column: "pd.Series[Any]") -> list[Any]:
    values: list[Any] = column.tolist()
    return values if isinstance(column.dtype, np.dtype) else [None if value is pd.NA else value for value in values]


def describe_result(result: Result) -> Row:
    """Return the columns of RESULT_COLUMNS that follow from one result alone, less those of its environment."""
    row = result.model_dump(include={"attempt", "status", "started_at", "finished_at", "written_by"})
    row |= result.phases.model_dump() | describe_conditions(result)
    row["window_samples_per_s"] = result.window_samples_per_s
    if result.samples is not None:
        row |= {
            "num_warmup_steps_taken": len(result.samples.warmup_step_seconds),
            "num_steps_taken": len(result.samples.step_seconds),
            "reached_steady": result.samples.reached_steady,
            "median_step_seconds": float(np.median(result.samples.step_seconds)),
            "mean_step_seconds": fmean(result.samples.step_seconds or [math.nan]),
            "center_step_seconds": result.samples.center_step_seconds,
            "summarized_by": result.samples.summarized_by,
        }
        row |= _describe_pace(result, result.samples)
    if result.memory is not None:
        row |= result.memory.model_dump()
    if result.error is not None:
        row |= _describe_error(result.error)
    return row


def _describe_pace(result: Result, samples: Samples) -> Row:
    row: Row = {}
    if result.pipelined is not None:
        row["pipelined_step_seconds"] = result.pipelined.step_seconds
        row["pipelined_samples_per_s"] = result.cell.batch_size / result.pipelined.step_seconds
    if result.sustained is not None:
        row |= {
            "first_sustained_step_seconds": result.sustained.window_step_seconds[0],
            "settled_step_seconds": result.sustained.window_step_seconds[-1],
            "flat_after_seconds": result.sustained.flat_after_seconds,
            "sustained_seconds": result.sustained.seconds,
        }
    if samples.data_wait_seconds:
        row["data_wait_share"] = sum(samples.data_wait_seconds) / sum(samples.step_seconds)
    return row


def describe_environment(environment: Environment, framework: Framework) -> Row:
    """Return the columns of RESULT_COLUMNS that an environment says, for a result of this framework."""
    gpu = environment.gpu
    gpu_uuid = join_ids(gpu.uuid for gpu in environment.gpus)
    identity = environment.identity
    return {
        "environment_id": identify_environment(environment),
        "hardware_id": identify_hardware(environment),
        "hostname": environment.hostname,
        "gpu_uuid": gpu_uuid,
        "boot_id": identity.boot_id if identity else None,
        "booted_at": identity.booted_at if identity else None,
        "lasting_ids": join_ids(identity.lasting_ids) if identity else None,
        "host": environment.hostname,
        "machine": name_machine(environment.hostname, gpu_uuid),
        "cpu_model": environment.cpu_model,
        "num_threads": environment.num_threads,
        "gpu_name": gpu.name if gpu else None,
        "driver_version": gpu.driver_version if gpu else None,
        "python_version": environment.python_version,
        "framework_version": environment.versions.get(FRAMEWORK_PACKAGES[framework]),
        "cuda_graph": environment.settings.get("cuda_graph"),
    }


def _describe_error(error: Failure) -> Row:
    return {"error_kind": error.kind, "error_message": error.message} | error.model_dump(
        include={"exit_code", "signal", "stderr_tail"}
    )

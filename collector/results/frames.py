"""Tabulate documents as tidy data frames: one row per planned repeat, one row per step. Base units only."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bench.registry import FRAMEWORKS
from bench.schema import (
    Cell,
    Environment,
    Failure,
    Framework,
    Memory,
    Phases,
    Placement,
    PlannedCell,
    Result,
    Samples,
)
from collector.results.conditions import CONDITION_COLUMNS, VERDICT_COLUMNS, describe_conditions
from collector.results.identity import identify_environment, identify_hardware, name_machine
from collector.results.placements import PLACEMENT_COLUMNS, AttemptKey, describe_placement

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
MACHINE_COLUMNS: Columns = {"hostname": "str", "gpu_uuid": "str", "machine": "str"}
"""Which machine a repeat ran on: `gpu_uuid` of several GPUs is joined, see `name_machine` for `machine`."""
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
    "center_step_seconds": "float64",
    "summarized_by": "str",
    "throughput_samples_per_s": "float64",
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
    "kind": "str",
    "index": "int64",
    "seconds": "float64",
    "device_seconds": "float64",
}
# The package whose version names a framework's version.
FRAMEWORK_PACKAGES: dict[Framework, str] = {name: framework.package for name, framework in FRAMEWORKS.items()}
MISSING_REASON = "no result was found"


def tabulate_results(
    run_id: str,
    planned: Iterable[PlannedCell],
    attempts: Mapping[str, list[list[Result]]],
    placements: Mapping[AttemptKey, Placement],
) -> pd.DataFrame:
    """Return one row per planned repeat with the columns RESULT_COLUMNS.

    `attempts`: cell_id to one list per repeat (repeat 1 first) of its attempts, the one that counts first.
    """
    rows = [
        _describe_repeat(run_id, plan.cell, repeat, found, placements)
        for plan in planned
        for repeat, found in enumerate(attempts[plan.cell.cell_id], start=1)
    ]
    return make_frame(rows, RESULT_COLUMNS)


def tabulate_samples(results: Iterable[Result]) -> pd.DataFrame:
    """Return one row per step with the columns SAMPLE_COLUMNS; `index` counts from 0 in each kind."""
    parts = [part for result in results for part in _tabulate_steps(result)]
    if not parts:
        return make_frame([], SAMPLE_COLUMNS)
    return pd.concat(parts, ignore_index=True)


def make_frame(rows: list[Row], columns: Columns) -> pd.DataFrame:
    """Return `rows` as a DataFrame with exactly `columns` (name to dtype); a field that a row lacks is missing."""
    return pd.DataFrame(
        {name: pd.Series([row.get(name) for row in rows], dtype=dtype) for name, dtype in columns.items()}
    )


def list_rows(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of `frame`, the inverse of `make_frame`."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _describe_repeat(
    run_id: str, cell: Cell, repeat: int, found: list[Result], placements: Mapping[AttemptKey, Placement]
) -> Row:
    row = {"run_id": run_id, "cell_id": cell.cell_id, "repeat": repeat, "num_attempts": len(found)}
    row |= cell.model_dump(include=set(CELL_COLUMNS))
    if not found:
        return row | {"status": "missing", "error_message": MISSING_REASON}
    placement = placements.get((cell.cell_id, repeat, found[0].attempt))
    return row | _describe_result(found[0]) | describe_placement(placement, found[0].environment)


def _describe_result(result: Result) -> Row:
    row = result.model_dump(include={"attempt", "status", "started_at", "finished_at", "written_by"})
    row |= result.phases.model_dump() | describe_conditions(result)
    row["throughput_samples_per_s"] = result.throughput_samples_per_s
    if result.samples is not None:
        row |= {
            "num_warmup_steps_taken": len(result.samples.warmup_step_seconds),
            "num_steps_taken": len(result.samples.step_seconds),
            "reached_steady": result.samples.reached_steady,
            "median_step_seconds": float(np.median(result.samples.step_seconds)),
            "center_step_seconds": result.samples.center_step_seconds,
            "summarized_by": result.samples.summarized_by,
        }
        row |= _describe_pace(result, result.samples)
    if result.memory is not None:
        row |= result.memory.model_dump()
    if result.environment is not None:
        row |= _describe_environment(result.environment, result.cell.framework)
    if result.error is not None:
        row |= _describe_error(result.error)
    return row


def _describe_pace(result: Result, samples: Samples) -> Row:
    """Return PACE_COLUMNS, as far as they were measured."""
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


def _describe_environment(environment: Environment, framework: Framework) -> Row:
    gpu = environment.gpu
    return {
        "environment_id": identify_environment(environment),
        "hardware_id": identify_hardware(environment),
        "hostname": environment.hostname,
        "gpu_uuid": ", ".join(sorted(gpu.uuid for gpu in environment.gpus)) or None,
        "machine": name_machine(environment),
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


def _tabulate_steps(result: Result) -> list[pd.DataFrame]:
    if result.samples is None:
        return []
    series = {
        "warmup": (result.samples.warmup_step_seconds, None),
        "timed": (result.samples.step_seconds, result.samples.device_step_seconds),
    }
    return [
        pd.DataFrame(
            {
                "cell_id": result.cell_id,
                "repeat": result.repeat,
                "kind": kind,
                "index": np.arange(len(seconds)),
                "seconds": np.array(seconds),
                "device_seconds": np.nan if device is None else np.array(device),
            }
        ).astype(dict(SAMPLE_COLUMNS))
        for kind, (seconds, device) in series.items()
    ]

"""Define the columns of the tidy tables and of the data set: name, type, unit, meaning, place in the document.

Base units only. docs/tables.md and the reading of documents are made of what stands here.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa
from pydantic import BaseModel

from bench.schema import Cell, Memory, Phases, Result, Roofline, hash_text, is_device_shared
from collector.cell_words import describe_neighbour

Row = dict[str, Any]
Columns = Mapping[str, str]
"""Name to dtype."""
MEANINGS: dict[str, str] = {}
PATHS: dict[str, tuple[str, ...]] = {}
"""Of the columns that hold a field of a result as it stands: the names that lead to it."""


def _define(table: str) -> Columns:
    """Return the dtypes of columns: a line for each with name, dtype, path in a result or `-`, and meaning.

    Without a meaning, it is that of the document's field of the same name: see docs/make_tables.py.
    """
    dtypes = {}
    for line in table.strip().replace("\n  ", " ").splitlines():
        name, dtype, path, *words = line.split()
        dtypes[name] = "datetime64[us, UTC]" if dtype == "time" else dtype
        if words:
            MEANINGS[name] = " ".join(words)
        if path != "-":
            PATHS[name] = tuple(path.split("."))
    return dtypes


def _define_fields(part: str, model: type[BaseModel], dtype: str, **others: str) -> Columns:
    """Return the dtypes of all fields of a part of a result, which keep their names."""
    PATHS.update({name: (part, name) for name in model.model_fields})
    return {name: others.get(name, dtype) for name in model.model_fields}


CELL_COLUMNS = _define("""
model str -
framework str - `pytorch`, `tensorflow` or `jax`.
device str -
phase str -
precision str -
mode str -
num_gpus int64 -
batch_size int64 -
input_size int64 -
num_classes Int64 -
data_dir str -
tenants int64 -
sharing str -
neighbour str - What the other tenants ran instead of the cell; missing: they ran the cell too.
num_warmup_steps int64 -
max_warmup_seconds float64 -
num_steps int64 -
min_seconds float64 -
sampling_seconds float64 -
pipelined_seconds float64 -
sustain_seconds float64 -
num_profiled_steps int64 -
seed int64 -
""")
DURATION_COLUMNS: Columns = {
    **_define_fields("phases", Phases, "float64"),
    **_define("""
cold_start_seconds float64 - Import, build and first step together of a repeat that loaded no compiled program.
warm_start_seconds float64 - The same of a repeat that loaded all of them from a cache that was filled before.
"""),
}
MEMORY_COLUMNS = _define_fields("memory", Memory, "Int64")
ENVIRONMENT_COLUMNS = _define("""
environment_id str - 8 hex digits of all that can change a time: repeats that differ in it are never pooled.
hardware_id str - 8 hex digits of the hardware and the driver: cells that differ in it are not compared.
cpu_model str environment.cpu_model The CPU.
num_threads Int64 environment.num_threads
gpu_name str environment.gpu.name The GPU; missing for a CPU cell.
driver_version str environment.gpu.driver_version The GPU's driver.
python_version str environment.python_version Python.
framework_version str - The framework.
cuda_graph boolean - Whether the step was one CUDA graph.
""")
PACE_COLUMNS = _define("""
pipelined_step_seconds float64 pipelined.step_seconds A step in the window without synchronisation after each step.
pipelined_samples_per_s float64 - Samples a second in that window.
first_sustained_step_seconds float64 - A step in the first window of the steps that ran on.
settled_step_seconds float64 - A step in the last window of the steps that ran on.
flat_after_seconds float64 sustained.flat_after_seconds
sustained_seconds float64 sustained.seconds How long the steps ran on.
data_wait_share float64 - Part of the timed steps that waited for data.
""")
"""What was measured beside the timed window's steps: throughput as people train, speed that lasts, waits for data."""
MACHINE_COLUMNS = _define("""
hostname str environment.hostname
gpu_uuid str - The GPUs of the cell.
boot_id str environment.identity.boot_id The kernel's id of the boot; missing: not recorded.
booted_at time environment.identity.booted_at When the boot began, by the machine's clock; missing: not recorded.
lasting_ids str - Hashes of ids that outlive a reboot, such as a cloud instance's; missing: none was readable.
host str - The host name, and the boot where one name stands for several hosts. In the data set always the name.
machine str - The host, with the GPUs of a GPU cell: two cards of one model are two machines.
""")
"""Which machine a repeat ran on. Several GPUs and ids are joined; see `collector.results.hosts` for `host` and
`machine`, which depend on the other results: in the rows of the data set they are as one result alone gives them."""
VERDICT_COLUMNS = _define("""
verdict str validity.verdict Whether the measurement is valid: the gravest of its faults, see docs/verdicts.md.
fault_verdicts str - The verdict of each of its faults, with spaces between them; missing of a result that an older
  version of the tool read and whose document is gone.
verdict_reasons str - Why it is not valid, with the values found.
unchecked str - What the verdict does not cover.
notes str - What a reader should know that does not count against the measurement.
""")
_COUNTED = ("flops_per_step", "least_flops_per_step", "min_bytes_per_step")
ROOFLINE_COLUMNS = _define_fields(
    "roofline", Roofline, "float64", **dict.fromkeys(_COUNTED, "Int64"), peak_source="str", bound="str"
)
MEANINGS |= {
    "achieved_flops_per_second": "Operations of a step over the median step.",
    "peak_bytes_per_second": "The peak of the memory of all GPUs of the cell.",
}
CPU_COLUMNS = _define("""
cpu_own_cores float64 cpu_use.own_cores CPU time of the process over the timed window.
cpu_other_cores float64 cpu_use.other_cores Busy cores of the machine that were not the process's own.
num_machine_cores Int64 cpu_use.num_machine_cores Cores of the machine that /proc/stat counts.
cpu_affinity_cores Int64 cpu_use.num_affinity_cores CPUs that the process could run on.
cpu_affinity_other_cores float64 cpu_use.affinity_other_cores Busy CPUs among them that were not the process's own.
cpu_sibling_busy_cores float64 cpu_use.sibling_busy_cores Busy hyperthreads beside the process's cores.
cpu_pressure_share float64 cpu_use.pressure_share Part of the window in which a thread of the cgroup waited for a
  core.
cpu_throttled_share float64 - Part of the quota's periods in which it was used up.
cpu_throttled_seconds float64 cpu_use.throttled_seconds How long the quota kept threads waiting.
cpu_energy_per_sample_joules float64 - Energy of the CPU sockets per sample (RAPL), other processes included.
cpu_product_flops_per_second float64 - The faster matrix product before and after the timed window.
""")
CALIBRATION_COLUMNS = _define("""
gpu_product_flops_per_second float64 calibration.product_flops_per_second The GPU's matrix product of the calibration,
  after everything else.
copy_bytes_per_second float64 calibration.copy_bytes_per_second Copies within the device's memory in the calibration:
  bytes read and written.
copy_bytes Int64 calibration.copy_bytes The size of the array that the calibration copies.
""")
GPU_COLUMNS = _define("""
gpu_idle_power_watts float64 - Power before the first step, GPUs summed.
gpu_mean_power_watts float64 - Mean power while sampled, GPUs summed.
gpu_energy_per_step_joules float64 - Energy of a step, GPUs summed.
gpu_energy_per_sample_joules float64 - Energy of a sample, GPUs summed.
gpu_energy_source str - What the energy was read from.
gpu_sm_clock_mhz float64 - Median SM clock, of the slowest GPU.
gpu_sm_clock_share float64 - That clock over the highest that the GPU allows.
gpu_power_limit_watts float64 - The limit in force, GPUs summed.
gpu_default_power_limit_watts float64 - The limit that the card came with, GPUs summed.
gpu_max_temperature_celsius float64 - The highest temperature of any GPU.
gpu_memory_before_bytes Int64 - Memory in use before the process, of the fullest GPU.
gpu_memory_peak_bytes Int64 - The most memory in use, of the fullest GPU.
gpu_throttle_reasons str - Why clocks were lowered, with the part of the samples; empty: not read.
num_foreign_processes Int64 - Processes of others on the GPUs; missing where they cannot be seen.
""")
PROFILE_COLUMNS = _define("""
kernels_per_step float64 - Kernels of a step under the profiler, on the busiest GPU.
copies_per_step float64 - Copies of a step under the profiler, on the busiest GPU.
kernel_seconds_per_step float64 device_profile.kernel_seconds_per_step How long a step's kernels ran.
kernel_busy_share float64 device_profile.kernel_busy_share That time over the step without the profiler.
profiled_step_seconds float64 - A step under the profiler.
profiled_busy_share float64 device_profile.profiled_busy_share Time of kernels over the step under the profiler.
""")
CONDITION_COLUMNS: Columns = {
    **ROOFLINE_COLUMNS,
    **CPU_COLUMNS,
    **CALIBRATION_COLUMNS,
    **GPU_COLUMNS,
    **PROFILE_COLUMNS,
    **_define("""
logit_error float64 precision_error.relative_error Of a language model's logits: the norm of their differences from
  those in float64 over the norm of those.
equal_token_share float64 precision_error.equal_token_share Share of tokens that are chosen as in float64.
"""),
}
"""What of the conditions both results and their summary have; the summary counts the verdicts instead."""
PLACEMENT_COLUMNS = _define("""
instance_type str -
region str -
zone str -
is_spot boolean -
image_id str -
kubelet_version str - The node's kubelet.
other_containers str -
""")
RESULT_COLUMNS: Columns = {
    **_define("""
run_id str run_id The run.
cell_id str cell_id The cell: a readable slug and 8 hex digits of the SHA-256 of its canonical JSON.
repeat int64 repeat
is_first_stage boolean - Whether the repeat is one of those whose spread decided how many the cell got; false where the
  matrix gives the number.
attempt str attempt
num_attempts int64 - How many attempts at the repeat left a result. The earliest `ok` one that is not `contaminated`
  counts, else the earliest `ok` one, else the latest.
status str status `ok`, `failed`, `oom`, `timeout`, `preempted`; in the results `missing` where there is no result,
  and `unreadable` where the store does not give it.
"""),
    **CELL_COLUMNS,
    **_define("""
started_at time started_at When the attempt began, in UTC.
finished_at time finished_at When the attempt ended, in UTC.
written_by str written_by
"""),
    **DURATION_COLUMNS,
    **_define("""
num_warmup_steps_taken Int64 - Warm-up steps, the first one not counted.
num_steps_taken Int64 - Timed steps.
reached_steady boolean samples.reached_steady
median_step_seconds float64 - Median of the timed steps.
mean_step_seconds float64 - Mean of the timed steps.
center_step_seconds float64 samples.center_step_seconds The one step time that stands for the repeat, as
  `summarized_by` says: its median, or the mean, of all repeats of a cell where the steps of one lie on two levels.
summarized_by str samples.summarized_by
window_samples_per_s float64 window_samples_per_s Samples of the timed window over its seconds: over the whole window,
  with every hiccup. The `throughput_samples_per_s` of a cell is its batch over its step time, which mostly comes from
  medians.
"""),
    **PACE_COLUMNS,
    **MEMORY_COLUMNS,
    **VERDICT_COLUMNS,
    **CONDITION_COLUMNS,
    **ENVIRONMENT_COLUMNS,
    **PLACEMENT_COLUMNS,
    **MACHINE_COLUMNS,
    **_define("""
error_kind str error.kind Why the attempt did not end well, in one of a few words.
error_message str error.message The same in a line.
exit_code Int64 error.exit_code The exit code of the process.
signal str error.signal
stderr_tail str error.stderr_tail
"""),
}
SAMPLE_COLUMNS = _define("""
cell_id str -
repeat int64 -
tenant int64 - Which of the tenants that used the device at once, from 0; 0 of a cell that had it to itself.
kind str - `warmup` or `timed`.
index int64 - The step's number in its kind, from 0.
seconds float64 - Wall time of the step.
device_seconds float64 - Time of the step between two events on the GPU; missing where there are none.
""")
IDENTITY: Columns = {name: RESULT_COLUMNS[name] for name in ("run_id", "cell_id", "repeat", "attempt")}
TENANT_COLUMNS: Columns = {
    **IDENTITY,
    **_define("""
tenant int64 -
alone_cell_id str - The cell that is this tenant's work on a device of its own, measured as long.
"""),
    **{name: CELL_COLUMNS[name] for name in ("model", "phase", "precision", "mode", "batch_size", "input_size")},
    **_define("""
status str -
window_seconds float64 -
lateness_seconds float64 -
num_warmup_steps_taken Int64 -
num_steps_taken Int64 -
window_samples_per_s float64 -
mean_step_seconds float64 -
"""),
    **MEMORY_COLUMNS,
    "device_memory_bytes": "Int64",
    "error_kind": "str",
    "error_message": "str",
}
"""One row per tenant of an attempt that had several."""
MISSING_REASON = "no result was found"


def make_frame(rows: list[Row], columns: Columns) -> pd.DataFrame:
    """Return `rows` as a DataFrame with exactly `columns` (name to dtype); a field that a row lacks is missing."""
    return pd.DataFrame(rows, columns=list(columns)).astype(dict(columns))


def list_rows(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of `frame`, None in the place of every missing value: the inverse of `make_frame`.

    Whole columns become Python values at once: of some hundred rows `DataFrame.to_dict` takes four times as long.
    """
    if frame.columns.empty:
        return [{} for _ in frame.index]
    columns = [
        [None if is_missing else value for value, is_missing in zip(column.tolist(), column.isna(), strict=True)]
        for _, column in frame.items()
    ]
    names = [str(name) for name in frame.columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def group_rows(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows (of `list_rows`) by their values of the columns, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


STEP_SERIES = ("warmup_step_seconds", "step_seconds", "device_step_seconds")


MISSING = "missing"
"""There is no record."""
UNREADABLE = "unreadable"
"""The store has a record, and does not give it: how the repeat ended is not known."""
WITHOUT_RECORD = (MISSING, UNREADABLE)


TABLES_VERSION = 2
"""Goes up when a column's meaning changes while its name stays: rows of other versions are read anew from the JSON."""

ATTEMPTS, PLACEMENTS = "attempts", "placements"

ARROW_TYPES: Mapping[str, pa.DataType] = {
    "str": pa.string(),
    "category": pa.dictionary(pa.int32(), pa.string()),
    "int64": pa.int64(),
    "Int64": pa.int64(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "datetime64[us, UTC]": pa.timestamp("us", tz="UTC"),
    "list[float64]": pa.list_(pa.float64()),
}
_OBJECT_COLUMNS = _define("""
key str - The key of the JSON document that the row was made from.
object_version str - Its version in the store: the ETag; of a file its time of writing, size and time of change.
num_bytes int64 - Its size.
""")
"""The object that a row was made from, as a listing names it."""
_OF_A_REPEAT = ("is_first_stage", "num_attempts", *PLACEMENT_COLUMNS)
SERIES_COLUMNS: Columns = dict.fromkeys(STEP_SERIES, "list[float64]")
RECORD_COLUMNS: Columns = {
    **{name: dtype for name, dtype in TENANT_COLUMNS.items() if name not in IDENTITY},
    **SERIES_COLUMNS,
}
"""What an attempt has of each of its tenants; the steps of the first one are its own."""
ATTEMPT_COLUMNS: Columns = {
    **_OBJECT_COLUMNS,
    **{name: dtype for name, dtype in RESULT_COLUMNS.items() if name not in _OF_A_REPEAT},
    **_define("""
host_framework str host_peak.framework The framework of the matrix products of a CPU cell.
host_theoretical_flops_per_second float64 host_peak.theoretical_flops_per_second Cores times width times clock of a
  CPU cell's host.
"""),
}
TABLE_COLUMNS: Mapping[str, Columns] = {
    ATTEMPTS: {
        **ATTEMPT_COLUMNS,
        **_define("""
environment category - The JSON document of the environment.
"""),
        **SERIES_COLUMNS,
        **_define("""
tenant_records records - Of an attempt that had several tenants: what `tenants.parquet` has of each, and the steps of
  all but the first.
"""),
    },
    PLACEMENTS: {
        **_OBJECT_COLUMNS,
        **IDENTITY,
        **PLACEMENT_COLUMNS,
        **_define("""
node_name str - The node.
"""),
    },
}


@cache
def make_schema(table: str) -> pa.Schema:
    records = pa.list_(pa.struct([(name, ARROW_TYPES[dtype]) for name, dtype in RECORD_COLUMNS.items()]))
    types = {**ARROW_TYPES, "records": records}
    return pa.schema([(name, types[dtype]) for name, dtype in TABLE_COLUMNS[table].items()])


@cache
def compute_version() -> str:
    """Return the version of the tables' layout, such as `1-0a1b2c3d`; it changes whenever a column or field does."""
    contract = {"columns": TABLE_COLUMNS, "tenants": RECORD_COLUMNS, "result": Result.model_json_schema()}
    return f"{TABLES_VERSION}-{hash_text(json.dumps(contract, sort_keys=True, default=dict))}"


SHARING_FIELDS = ("tenants", "sharing", "neighbour")
"""The fields of a cell that say with whom it shared its device, and how; at their defaults it had it to itself."""
PROTOCOL_FIELDS = (
    *("num_warmup_steps", "max_warmup_seconds", "num_steps", "min_seconds"),
    *("sampling_seconds", "pipelined_seconds", "sustain_seconds", "num_profiled_steps"),
)
"""The fields of a cell that say how long is measured, not what."""


def describe_cell(cell: Cell) -> Row:
    """Return the columns CELL_COLUMNS of a cell; its neighbour in words, as `describe_neighbour` writes it."""
    return {name: getattr(cell, name) for name in CELL_COLUMNS} | {"neighbour": describe_neighbour(cell)}


def find_shared(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows (with CELL_COLUMNS) are of cells that shared their device, as `Cell.is_shared` says it."""
    kinds = zip(rows["tenants"], rows["sharing"], strict=True)
    return pd.Series([is_device_shared(*kind) for kind in kinds], rows.index, "bool")


def is_shared(row: Row) -> bool:
    return is_device_shared(row["tenants"], row["sharing"])


def select_alone(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[~find_shared(rows)]

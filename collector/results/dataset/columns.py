"""Define the columns of the data set's tables, and the version that their files carry."""

import json
from collections.abc import Mapping
from functools import cache

import pyarrow as pa

from bench.schema import Result, hash_text
from collector.results.frames import RESULT_COLUMNS, TENANT_COLUMNS, Columns
from collector.results.placements import PLACEMENT_COLUMNS
from collector.results.tenancy import STEP_SERIES

TABLES_VERSION = 1
"""Goes up when a column's meaning changes while its name stays: rows of other versions are read anew from the JSON."""

ATTEMPTS, STEPS, ENVIRONMENTS = "attempts", "steps", "environments"
TENANTS, PLACEMENTS, NODE_FAULTS = "tenants", "placements", "node-faults"

ARROW_TYPES: Mapping[str, pa.DataType] = {
    "str": pa.string(),
    "int64": pa.int64(),
    "Int64": pa.int64(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "datetime64[us, UTC]": pa.timestamp("us", tz="UTC"),
    "list[float64]": pa.list_(pa.float64()),
}
# The object that a row was made from, as a listing names it.
OBJECT_COLUMNS: Columns = {"key": "str", "object_version": "str", "num_bytes": "int64"}
_ATTEMPT_IDENTITY: Columns = {"cell_id": "str", "repeat": "int64", "attempt": "str"}
# What of a result `RESULT_COLUMNS` does not have, and what is computed from several results, or filtered by.
_FURTHER_COLUMNS: Columns = {
    "environment_document": "str",
    "image": "str",
    "git_revision": "str",
    "num_visible_cores": "Int64",
    "host_framework": "str",
    "host_theoretical_flops_per_second": "float64",
}
_OF_A_REPEAT = ("num_attempts", *PLACEMENT_COLUMNS)

TABLE_COLUMNS: Mapping[str, Columns] = {
    ATTEMPTS: {
        **OBJECT_COLUMNS,
        **{name: dtype for name, dtype in RESULT_COLUMNS.items() if name not in _OF_A_REPEAT},
        **_FURTHER_COLUMNS,
    },
    STEPS: {
        "key": "str",
        "object_version": "str",
        "run_id": "str",
        **_ATTEMPT_IDENTITY,
        "tenant": "int64",
        **dict.fromkeys(STEP_SERIES, "list[float64]"),
    },
    TENANTS: {"key": "str", "object_version": "str", **TENANT_COLUMNS},
    ENVIRONMENTS: {
        "environment_document": "str",
        "environment_id": "str",
        "hostname": "str",
        "image": "str",
        "git_revision": "str",
        "document": "str",
    },
    PLACEMENTS: {
        **OBJECT_COLUMNS,
        "run_id": "str",
        **_ATTEMPT_IDENTITY,
        **{name: dtype for name, dtype in PLACEMENT_COLUMNS.items() if name != "cpu_manager_policy"},
        "node_name": "str",
        "num_cpus": "Int64",
        "cpu_request_cores": "float64",
        "qos_class": "str",
    },
    NODE_FAULTS: {**OBJECT_COLUMNS, "run_id": "str", **_ATTEMPT_IDENTITY, "document": "str"},
}


@cache
def make_schema(table: str) -> pa.Schema:
    """Return the Arrow schema of a table of the data set."""
    return pa.schema([(name, ARROW_TYPES[dtype]) for name, dtype in TABLE_COLUMNS[table].items()])


@cache
def compute_version() -> str:
    """Return the version of the tables' layout, such as `1-0a1b2c3d`; it changes whenever a column or field does."""
    contract = {"columns": TABLE_COLUMNS, "result": Result.model_json_schema()}
    return f"{TABLES_VERSION}-{hash_text(json.dumps(contract, sort_keys=True, default=dict))}"

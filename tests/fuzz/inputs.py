"""Strategies for each kind of foreign input, made of valid ones and of the models that read them."""

import io
import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd
import yaml
from hypothesis import strategies as st

from access_scenarios import describe_scenario
from collector.access.scenario import Scenario
from collector.audit.table import AuditTable
from collector.prices.table import PriceTable
from fuzz.cases import Content
from fuzz.mutations import (
    Dump,
    Path,
    draw_changed,
    draw_contents,
    dump_csv,
    dump_json,
    dump_yaml,
)
from fuzz.schemas import draw_documents, list_fields
from fuzz.workspaces import (
    AUDIT,
    AUDIT_CSV,
    COLUMNS,
    GPUS,
    MATRIX,
    PRICES,
    PROFILE,
    VALUES,
    make_probe,
)
from runner.checkout import ROOT
from runner.matrix.values import CELL_KEYS, EXECUTION_KEYS
from runner.probe.search import ProbeReport
from runner.profiles.model import Profile

Contents = st.SearchStrategy[Content]


def draw_model(kind: Any, trees: Sequence[Any], dump: Dump) -> Contents:
    """Draw files that a model reads: changed valid ones, and some that its schema allows."""
    return draw_contents(draw_changed(trees, list_fields(kind)), dump, draw_documents(kind).map(dump))


def _read_shipped(folder: str) -> list[Any]:
    return [yaml.safe_load(path.read_bytes()) for path in sorted((ROOT / folder).glob("*.yaml"))]


MATRIX_FIELDS: list[Path] = [
    *((part, key) for key in (*CELL_KEYS, *EXECUTION_KEYS) for part in ("axes", "defaults")),
    *(("exclude", 0, key) for key in CELL_KEYS),
]
matrices = draw_contents(draw_changed([MATRIX, MATRIX, *_read_shipped("runner/matrices")], MATRIX_FIELDS), dump_yaml)
profiles = draw_model(Profile, [PROFILE, PROFILE, *_read_shipped("runner/profiles")], dump_yaml)
price_tables = draw_model(PriceTable, [PRICES], dump_yaml)
scenarios = draw_model(Scenario, [describe_scenario(), *_read_shipped("collector/access/scenarios")], dump_yaml)
audit_tables: dict[str, Contents] = {
    "yaml": draw_model(AuditTable, [AUDIT, AUDIT, *_read_shipped("collector/audit/tables")], dump_yaml),
    "csv": draw_contents(draw_changed([AUDIT_CSV]), dump_csv),
}
gpu_tables = draw_contents(draw_changed([GPUS]), dump_csv)
value_tables = draw_contents(draw_changed([VALUES]), dump_csv)
probes = draw_model(ProbeReport, [make_probe()], dump_json)


def dump_parquet(columns: Any) -> bytes:
    """Return columns as a Parquet file, as CSV where Arrow cannot hold them in one."""
    try:
        buffer = io.BytesIO()
        pd.DataFrame({str(name): pd.Series(values) for name, values in columns.items()}).to_parquet(buffer)
        return buffer.getvalue()
    except (
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
        ArithmeticError,
        KeyError,
        UnicodeError,
        RecursionError,
    ):
        return dump_csv([columns])


COLUMN_TYPES = (
    "float32",
    "int64",
    "str",
    "category",
    "datetime64[ns]",
    "datetime64[ns, UTC]",
    "bool",
    "timedelta64[ns]",
)


def cast_quietly(values: "pd.Series[Any]", dtype: str) -> "pd.Series[Any]":
    """Return values as another type, without the warnings of pandas: they would be of the fuzzing, not of the tool."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return values.astype(dtype)  # type: ignore[call-overload, no-any-return]


@st.composite
def draw_columns(draw: st.DrawFn) -> bytes:
    """Draw a Parquet file with a column of another type."""
    frame = pd.DataFrame(COLUMNS)
    name = draw(st.sampled_from(list(COLUMNS)))
    values = pd.Series(
        draw(st.lists(st.floats() | st.integers(-(2**62), 2**62), min_size=len(frame), max_size=len(frame)))
    )
    try:
        frame[name] = cast_quietly(values, draw(st.sampled_from(COLUMN_TYPES)))
    except (ValueError, TypeError, OverflowError, ArithmeticError):
        frame[name] = values.astype(str)
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


changed_columns = draw_changed([COLUMNS])
parquet_files: Contents = draw_contents(changed_columns, dump_parquet, draw_columns())

"""Write a run's results and tables of numbers as Parquet and CSV files."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from collector.comparisons import compare_all
from collector.files import replace_file, replace_steering
from collector.results.collection import Collection
from collector.results.stored_tables import write_parquet
from collector.results.summary import list_failures, list_invalid, list_skipped, summarize_cells
from collector.sharing import tabulate_sharing
from collector.tables.cells import ERRORS, TOKEN_COLUMNS, TOKEN_IDENTITY, tabulate_tokens
from collector.tables.environments import tabulate_machines

FORMULA = re.compile(r"[=@\t\r]|[+-](?!(?:\d*\.?\d+(?:[eE][-+]?\d+)?|inf)?\Z)")
"""What a spreadsheet takes for a formula: hosts and error messages can have any text. Numbers are none."""


def write_collection(
    collection: Collection, directory: Path, formats: Sequence[str] = ("parquet", "csv")
) -> list[Path]:
    """Write results, samples and tables to `directory`, made if absent, and return the paths of the files.

    `results`, `samples` and `tenants` as Parquet (samples hold every raw step time), `results` and the tables as CSV,
    all in base units. Files of the same names are replaced, each only by a whole one; UserError where that cannot be
    done.
    """
    paths = []
    if "parquet" in formats:
        paths += [
            _write_parquet(collection.results, directory / "results.parquet"),
            _write_parquet(collection.steps.tabulate(), directory / "samples.parquet"),
            _write_parquet(collection.tenants, directory / "tenants.parquet"),
        ]
    if "csv" in formats:
        for name, table in _tabulate(collection):
            paths.append(directory / f"{name}.csv")
            with replace_file(paths[-1]) as file:
                write_csv(table, file)
    return paths


def _tabulate(collection: Collection) -> Iterator[tuple[str, pd.DataFrame]]:
    yield "results", collection.results
    summary = summarize_cells(collection)
    yield "cells", summary
    yield "language-models", tabulate_tokens(summary, collection)[[*TOKEN_IDENTITY, *TOKEN_COLUMNS, *ERRORS]]
    yield from compare_all(summary).items()
    yield "machines", tabulate_machines(collection.results)
    yield "sharing", tabulate_sharing(collection)
    yield "tenants", collection.tenants
    yield "invalid", list_invalid(collection)
    yield "failures", list_failures(collection)
    yield "skipped", list_skipped(collection)


def _write_parquet(frame: pd.DataFrame, path: Path) -> Path:
    with replace_file(path) as file:
        write_parquet(pa.Table.from_pandas(frame, preserve_index=False), file)
    return path


def write_csv(frame: pd.DataFrame, file: Any) -> None:
    """Write the columns of `frame` in UTF-8 with a line of names; missing is empty.

    A text that a spreadsheet would calculate (`=HYPERLINK(...)`) has an apostrophe before it, and what steers a
    terminal is replaced (`collector.files`).
    """
    texts = frame.select_dtypes(["str", "object"])
    harmless = {name: column.map(_disarm, na_action="ignore") for name, column in texts.items()}
    frame.assign(**harmless).to_csv(file, index=False, lineterminator="\n")  # type: ignore[arg-type]


def _disarm(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    visible = replace_steering(value)
    return f"'{visible}" if FORMULA.match(visible) else visible

"""Write a run's results and tables of numbers as Parquet and CSV files."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from collector.comparisons import compare_all
from collector.csv_files import write_csv
from collector.files import replace_file
from collector.machine_differences import tabulate_machines
from collector.results.collection import Collection
from collector.results.parquet_files import choose_dictionary_columns
from collector.results.steps import StepTimes
from collector.results.summary import list_failures, list_invalid, list_skipped, summarize_cells
from collector.sharing.tabulate import tabulate_sharing

ROWS_AT_ONCE = 8192


def write_collection(
    collection: Collection, directory: Path, *, include_invalid: bool = False, moderated: bool = False
) -> list[Path]:
    """Write results, samples and tables to `directory`, made if absent, and return the paths of the files.

    `results`, `samples` and `tenants` as Parquet (samples hold every raw step time), `results` and the tables as CSV,
    all in base units. `include_invalid`: rows without a valid repeat are compared too. `moderated`: as in
    `summarize_cells`. Files of the same names are replaced, each only by a whole one; UserError where that cannot be
    done.
    """
    tables = _tabulate(collection, include_invalid=include_invalid, moderated=moderated)
    written = []
    for name, table in tables:
        written.append(_write_csv(table, directory / f"{name}.csv"))
        del table
        pa.default_memory_pool().release_unused()  # what a summary of 20,000 cells leaves behind is 100 MB
    return [
        _write_parquet(collection.results, directory / "results.parquet"),
        _write_samples(collection.steps, directory / "samples.parquet"),
        _write_parquet(collection.tenants, directory / "tenants.parquet"),
        *written,
    ]


def _tabulate(collection: Collection, *, include_invalid: bool, moderated: bool) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables by name; the large ones are gone when the next is made."""
    yield "results", collection.results
    summary = summarize_cells(collection, moderated=moderated)
    yield "cells", summary
    yield from compare_all(summary, include_invalid=include_invalid).items()
    del summary
    yield "machines", tabulate_machines(collection.results)
    yield "sharing", tabulate_sharing(collection, include_invalid=include_invalid)
    yield "tenants", collection.tenants
    yield "invalid", list_invalid(collection)
    yield "failures", list_failures(collection)
    yield "skipped", list_skipped(collection)


def _write_parquet(frame: pd.DataFrame, path: Path) -> Path:
    """Write a frame piece by piece: a large one does not fit into memory a second time."""
    schema = pa.Table.from_pandas(frame.iloc[:0], preserve_index=False).schema
    with replace_file(path) as file, _open_writer(file, schema) as writer:
        for first in range(0, len(frame), ROWS_AT_ONCE):
            piece = frame.iloc[first : first + ROWS_AT_ONCE]
            writer.write_table(pa.Table.from_pandas(piece, schema=schema, preserve_index=False))
    return path


def _write_samples(steps: StepTimes, path: Path) -> Path:
    """Write the rows of SAMPLE_COLUMNS piece by piece: all step times of a large run do not fit into memory."""
    pieces = steps.tabulate()
    first = pa.Table.from_pandas(next(pieces), preserve_index=False)
    with replace_file(path) as file, _open_writer(file, first.schema) as writer:
        for piece in pieces:
            writer.write_table(pa.Table.from_pandas(piece, schema=first.schema, preserve_index=False))
    return path


def _open_writer(file: BinaryIO, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(file, schema, use_dictionary=choose_dictionary_columns(schema))


def _write_csv(frame: pd.DataFrame, path: Path) -> Path:
    with replace_file(path) as file:
        write_csv(frame, file)
    return path

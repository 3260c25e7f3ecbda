"""A Collection comes in, its tables as Parquet and CSV files go out."""

from pathlib import Path

import pandas as pd

from collector.collection import Collection
from collector.comparisons import compare_devices, compare_frameworks
from collector.tables import list_failures, summarize_cells


def write_collection(collection: Collection, directory: Path) -> list[Path]:
    """Write results, samples and tables to `directory`, made if absent, and return the paths of the files.

    `results` and `samples` as Parquet (samples hold every raw step time), `results` and the tables as CSV, all in
    seconds and bytes. Files of the same names are replaced.
    """
    directory.mkdir(parents=True, exist_ok=True)
    summary = summarize_cells(collection)
    tables = {
        "results": collection.results,
        "cells": summary,
        "frameworks": compare_frameworks(summary),
        "devices": compare_devices(summary),
        "failures": list_failures(collection),
        "skipped": list_skipped(collection),
    }
    return [
        _write_parquet(collection.results, directory / "results.parquet"),
        _write_parquet(collection.samples, directory / "samples.parquet"),
        *(_write_csv(table, directory / f"{name}.csv") for name, table in tables.items()),
    ]


def list_skipped(collection: Collection) -> pd.DataFrame:
    """Return one row per skipped document: key, reason."""
    return pd.DataFrame([(document.key, document.reason) for document in collection.skipped], columns=["key", "reason"])


def _write_parquet(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_parquet(path, index=False)
    return path


def _write_csv(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path, index=False, lineterminator="\n")
    return path

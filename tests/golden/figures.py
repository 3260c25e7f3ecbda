"""Compute the figures of a stored run that golden files hold: every number, id and verdict, and no sentence.

The one place that knows which functions of the product compute them.
"""

import math
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from bench.store import Store
from collector.analysis import Analysis, analyze_run
from collector.audit.claims import evaluate_claims, gather_context
from collector.batches import fit_lines
from collector.facts import list_doubts
from collector.forecast.fit import fit_forecast
from collector.forecast.series import load_series
from collector.results.collection import Collection
from collector.results.load import load_run, load_runs
from collector.results.summary import summarize_collections
from collector.tables.comparisons import list_cheapest, rank_programs
from collector.versus.comparison import compare_sides
from collector.versus.question import METRICS, Question, select_runs
from collector.versus.sides import load_related_runs
from runner.nights import look
from runner.price_tables import load_prices

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PLACES = (ROOT / "docs" / "results", FOLDER / "runs")
"""Folders of stores: the published runs, and three that were made once for what those lack."""
FORECAST_YEAR = 2030
NIGHTS = FOLDER / "runs" / "nights"
COMPARED = (
    ("2026-11-22-h200", "study-alone-cpu", "study-cpu-1"),
    ("2026-11-22-h200", "study-gpu-a2", "study-gpu-c1"),
    ("2026-11-22-h200", "study-gpu-b2", "study-gpu-b5"),
    ("nights", "night-2", "night-3"),
)
"""(store, A, B): runs with cells in common."""
SENTENCES = (
    *("note", "notes", "faults", "unchecked", "disagreement", "machine_deviations"),
    *("verdict", "left_out", "scope", "subject", "reference", "subjects", "why"),
)
"""Columns of words, which may be worded anew."""
Rows = list[dict[str, Any]]
KINDS = {
    "undecided": "same",
    "left out": "left-out",
    "not compared": "not-compared",
    "machines differ": "none",
    "one repeat": "none",
    "not tested": "untested",
}
"""What the files of figures call a decision."""


def list_runs() -> list[tuple[Path, str]]:
    """Return (store, run id) of every run that golden files hold."""
    paths = sorted(path for place in PLACES for path in place.glob("*/runs/*/run.json"))
    return [(path.parents[2], path.parent.name) for path in paths]


def name_file(store: Path, run_id: str) -> str:
    """Return the name of the golden file of a run."""
    return f"{store.name}--{run_id}.csv"


@cache
def load(store: Path, run_id: str) -> Collection:
    return load_run(Store.open(store.resolve().as_uri()), run_id)


def compute_figures(store: Path, run_id: str) -> dict[str, Rows]:
    """Return the rows of each table of a run; the names of their columns differ between tables."""
    collection = load(store, run_id)
    analysis = analyze_run(collection, prices=load_prices(None))
    claims = evaluate_claims(gather_context(analysis.summary))
    return {
        "results": _take(
            collection.results,
            [
                "cell_id",
                "repeat",
                "attempt",
                "status",
                "verdict",
                "environment_id",
                "hardware_id",
                "center_step_seconds",
            ],
        ),
        "cells": _take_numbers(analysis.summary, ["cell_id", "environment_id", "hardware_id"]),
        **{name: _take_pairs(pairs) for name, pairs in analysis.comparisons.items()},
        "sharing": _take_numbers(analysis.sharing, ["cell_id", "environment_id", "role"]),
        "ranking": [*_list_ranking(analysis)],
        "doubts": [{"code": one.code, "severity": one.severity, "count": one.count} for one in list_doubts(analysis)],
        "claims": [{"id": one.claim.id, "verdict": one.verdict} for one in claims],
        "costs": [*_list_costs(analysis)],
        "memory": [*_list_lines(collection.results)],
    }


def compute_forecast() -> dict[str, Rows]:
    """Return the rows of the forecast of the shipped table of GPUs."""
    forecast = fit_forecast(load_series(), year=FORECAST_YEAR)
    return {"predictions": _take_numbers(forecast.predictions, ["candidate"])}


def compute_joint_figures() -> Iterator[tuple[str, dict[str, Rows]]]:
    """Yield what several runs together say, by the name of its file: forecast, claims, comparisons, a watched night."""
    yield "forecast.csv", compute_forecast()
    yield "watch--nights.csv", compute_night()
    stores = {store.name: store for store, _ in list_runs()}
    for store in (store for store in stores.values() if store.parent == PLACES[0]):
        yield f"claims--{store.name}.csv", compute_claims(store)
    for name, a, b in COMPARED:
        yield f"compare--{a}--{b}.csv", compute_comparison(stores[name], a, b)


def compute_claims(path: Path) -> dict[str, Rows]:
    """Return the verdicts on the study's claims by all runs of a folder, with the numbers of their sentences."""
    summary = summarize_collections([load(store, run_id) for store, run_id in list_runs() if store == path])
    return {
        "claims": [
            {
                "id": one.claim.id,
                "verdict": one.verdict,
                "findings": "; ".join(finding.title for finding in one.claim.findings),
                "measured": _list_numbers(one.measured),
                "arithmetic": _list_numbers(one.arithmetic),
            }
            for one in evaluate_claims(gather_context(summary))
        ]
    }


def compute_comparison(path: Path, run_a: str, run_b: str) -> dict[str, Rows]:
    """Return what `compare RUN_A RUN_B` says of each cell, with the noise of the other runs of the store."""
    store = Store.open(path.resolve().as_uri())
    collections = load_runs(store, (run_a, run_b))
    a, b = select_runs(run_a, run_b)
    found = compare_sides(
        Question(a=a, b=b, metric=METRICS["step-time"]), collections, load_related_runs(store, collections)
    )
    names = ("verdict", "ratio", "ratio_low", "ratio_high", "joint_low", "joint_high", "p_value", "p_adjusted", "floor")
    keys = ("cell_id_a", "cell_id_b", "num_repeats_a", "num_repeats_b")
    return {
        "cells": [{name: getattr(cell, name) for name in (*keys, *names)} for cell in found.cells],
        "together": [{name: getattr(group, name) for name in ("num_cells", *names)} for group in found.together],
        "unpaired": [{"cell_id": cell.cell_id} for cell in (*found.only_in_a, *found.only_in_b)],
        "end": [{"exit_code": found.exit_code, "is_between_machines": found.is_between_machines}],
    }


def compute_night() -> dict[str, Rows]:
    """Return what `watch` suspects in the newest of the made nights."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(NIGHTS, folder, dirs_exist_ok=True)
        report = look(Store.open(Path(folder).as_uri()))
    counts = ("num_nights", "num_cells", "num_uncounted", "num_too_new")
    names = ("direction", "num_cells", "first_run_id", "night_deviation", "confirmation_repeats")
    return {
        "night": [{"run_id": report.night} | {name: getattr(report, name) for name in counts}],
        "suspicions": [
            {"cells": " ".join(one.cell_ids)} | {name: getattr(one, name) for name in names} | one.shift.model_dump()
            for one in report.pending
        ],
    }


def _list_numbers(sentences: Iterable[str]) -> str:
    """Return the numbers of sentences in their order, whatever the words."""
    return "/".join(re.findall(r"\d+(?:\.\d+)?", " ".join(sentences))) or "none"


def _take_pairs(pairs: pd.DataFrame) -> Rows:
    keys = [f"{name}_{side}" for side in ("subject", "reference") for name in ("cell_id", "environment_id")]
    rows = _take(pairs, [*keys, "ratio", "ratio_low", "ratio_high", "joint_low", "joint_high", "p_value", "p_adjusted"])
    for row, decision in zip(rows, pairs["decision"], strict=True):
        row["kind"] = KINDS.get(decision, decision)
    return rows


def _list_ranking(analysis: Analysis) -> Iterator[dict[str, Any]]:
    for one in rank_programs(analysis):
        tied = {row["cell_id"] for row in one.tied}
        for row in one.programs:
            yield {
                "kind": "fastest",
                "first": one.programs[0]["cell_id"],
                "cell_id": row["cell_id"],
                "tied": row["cell_id"] in tied,
            }
    for cheap in list_cheapest(analysis):
        for other in (cheap.first, *cheap.tied):
            yield {
                "kind": "cheapest",
                "first": cheap.first.row["cell_id"],
                "cell_id": other.row["cell_id"],
                "tied": other is not cheap.first,
            }


def _list_costs(analysis: Analysis) -> Iterator[dict[str, Any]]:
    for cell in analysis.costs.cells if analysis.costs else ():
        for offer in cell.offers[:1]:
            cost = offer.cost_per_1000_samples
            yield {
                "cell_id": cell.cell_id,
                "machine": offer.row.machine,
                "cost": cost.value,
                "low": cost.low,
                "high": cost.high,
            }


def _list_lines(results: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for line in fit_lines(results):
        yield {"fixed": line.fixed_bytes, "sample": line.sample_bytes} | {
            name: str(value) for name, value in line.key.items()
        }


def _take_numbers(frame: pd.DataFrame, keys: Iterable[str]) -> Rows:
    """Return the keys and every column of numbers; columns of words are what sentences are made of."""
    numbers = [str(name) for name in frame if name not in SENTENCES and pd.api.types.is_numeric_dtype(frame[name])]
    return _take(frame, [*(name for name in keys if name in frame), *numbers])


def _take(frame: pd.DataFrame, names: Iterable[str]) -> Rows:
    wanted = list(dict.fromkeys(names))
    return [
        {
            name: None if pd.isna(value) else getattr(value, "item", lambda value=value: value)()
            for name, value in zip(wanted, row, strict=True)
        }
        for row in frame[wanted].itertuples(index=False, name=None)
    ]


def write_rows(tables: Mapping[str, Rows]) -> str:
    """Return the rows as lines of `table,column=value,...`, empty values left out, sorted within each table."""
    lines = []
    for table, rows in tables.items():
        lines += sorted(
            ",".join([table, *(f"{name}={_write(value)}" for name, value in row.items() if value is not None)])
            for row in rows
        )
    return "\n".join(lines) + "\n"


def _write(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value).replace(",", ";")


def read_line(line: str) -> tuple[list[str], list[float]]:
    """Return the texts of a line, and its numbers with the place of each in the texts as `#`."""
    texts, numbers = [], []
    for part in line.split(","):
        name, _, value = part.partition("=")
        try:
            number = float(value)
        except ValueError:
            texts.append(part)
            continue
        if math.isnan(number) or name.endswith("_id") or name in ("attempt", "repeat", "count"):
            texts.append(part)
        else:
            texts.append(f"{name}=#")
            numbers.append(number)
    return texts, numbers

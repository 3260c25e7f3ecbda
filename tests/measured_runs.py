"""Stores results as a run and loads it as the collector does."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.schema import Cell, Environment, Result, Run
from bench.store import Store
from collector.results.collection import Collection
from collector.results.load import load_run
from factories import RUN_ID, make_cell, make_environment, make_result, make_run, put_documents

Collect = Callable[..., Collection]
"""What the fixture `collect` of tests/unit/collector gives: `collect_results` with its directory."""


def collect_results(
    directory: Path, *results: Result, cells: Sequence[Cell] | None = None, repeats: int = 3, run_id: str = RUN_ID
) -> Collection:
    """Put `results` as a run into a store in `directory` and load it; planned are `cells`, or else their own."""
    planned = cells or list({result.cell_id: result.cell for result in results}.values())
    run = make_run(planned, repeats=repeats, run_id=run_id)
    return put_and_load(Store.open(f"file://{directory}"), run, results)


def put_and_load(store: Store, run: Run, results: Iterable[Result]) -> Collection:
    put_documents(store, run, results)
    return load_run(store, run.run_id)


def make_repeats(cell: Cell, *medians: float, **overrides: Any) -> list[Result]:
    """Return one result per median, each of three equal steps, so that every median is exact."""
    return [
        make_result(cell, repeat=number, step_seconds=(median,) * 3, **overrides)
        for number, median in enumerate(medians, start=1)
    ]


def make_spread(cell: Cell, seconds: float, environment: Environment | None = None, **overrides: Any) -> list[Result]:
    """Return three repeats around `seconds`, 1 % apart: their logs have a standard deviation of 1.0 %."""
    given = {} if environment is None else {"environment": environment}
    return make_repeats(cell, *(factor * seconds for factor in (0.99, 1.0, 1.01)), **given, **overrides)


TENSORFLOW = make_environment(versions={"tensorflow": "2.21.0", "keras": "3.13.0"})


def make_framework_pair(ratio: float, **fields: Any) -> list[Result]:
    """Return repeats of TensorFlow that takes `ratio` times as long as PyTorch, on the same host."""
    graph = make_cell(framework="tensorflow", mode="graph", **fields)
    return [*make_spread(make_cell(**fields), 0.1), *make_spread(graph, 0.1 * ratio, TENSORFLOW)]

"""Compare what was measured, and audit what somebody states."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from benchmatrix.arguments import (
    read_conditions,
    read_files,
    read_flag,
    read_ids,
    read_optional_text,
    read_path,
    read_percents,
    read_text,
)
from benchmatrix.places import DEFAULT_STORE
from benchmatrix.reading import load_collections

if TYPE_CHECKING:  # pandas and the collector take a second to import: only what reads results does it
    import pandas as pd

    from collector.versus.document import CompareDocument
    from runner.reporting.compared_runs import RunChoice

Conditions = Mapping[str, str | int | float | bool]
"""Fields and the values that they must have, such as `{"framework": "jax", "batch_size": 64}`."""


def compare(
    a: str | Conditions,
    b: str | Conditions | None = None,
    *,
    store: str = DEFAULT_STORE,
    store_b: str | None = None,
    runs: Sequence[str] = (),
    where: Conditions | None = None,
    metric: str | None = None,
    floor_percent: float | None = None,
    include_invalid: bool = False,
    verify: Sequence[str | PathLike[str]] | None = None,
) -> "CompareDocument":
    """Return whether B is slower than A, cell by cell, as `benchmatrix compare --json` prints it.

    `a` and `b`: two run ids (`b`: None for the newest run of the store), or conditions that choose both sides from
    `runs` (patterns of ids; none for the newest run). `where` restricts both sides. `metric`: `step-time`,
    `time-per-sample`, `pipelined-step-time`, `peak-memory` or `energy`; None for the step time, and where the
    batches of the sides differ for the time per sample. `floor_percent`: smaller differences are taken for none.
    `benchmatrix schema compare` describes the document; ratios are B over A. `verify`: as for `load_repeats`.
    Raise UserError if a run is not there, or the sides have nothing in common.

    >>> found = compare(
    ...     {"framework": "pytorch", "mode": "eager"},
    ...     {"framework": "jax", "mode": "compiled"},
    ...     store="file://docs/results/2026-11-21-h200",
    ...     where={"model": "resnet18", "phase": "train"},
    ... )
    >>> found.metric.name, len(found.cells) > 0
    ('step-time', True)
    """
    from runner.reporting.comparison import compare_runs

    return compare_runs(
        _choose(a, b, runs, store, store_b, verify),
        () if where is None else read_conditions(where, "where"),
        read_optional_text(metric, "metric"),
        floor=read_percents(floor_percent, "floor_percent"),
        include_invalid=read_flag(include_invalid, "include_invalid"),
    )[1]


def audit(
    table: str | PathLike[str],
    runs: str | Sequence[str] = (),
    *,
    store: str = DEFAULT_STORE,
    include_invalid: bool = False,
    verify: Sequence[str | PathLike[str]] | None = None,
) -> "pd.DataFrame":
    """Return one row for each row of a table of stated times or rates, with its verdicts and the arithmetic.

    `table`: a YAML or CSV file (docs/audit.md), or the name of a table that comes with the tool. `runs`: measured runs
    that it is held against; none for arithmetic alone; `verify`: as for `load_repeats`. Rates are in FLOP/s;
    `share_of_bound` is the stated rate over the highest that the device allows. Raise UserError if the table is wrong
    or a run is not there.

    >>> audit("nvidia-t4-resnet50")["verdict"].value_counts().to_dict()
    {'possible': 21}
    """
    import pandas as pd

    from collector.audit.evaluation import audit_table
    from collector.audit.page import describe_row
    from collector.results.summary import summarize_collections
    from runner.audit_tables.loading import load_table

    path, ids = read_path(table, "table", "the name of a table or the path of a file"), read_ids(runs, "runs") or ()
    place, keys = read_text(store, "store"), read_files(verify, "verify")
    read_flag(include_invalid, "include_invalid")
    collections = load_collections(ids, place, keys) if ids else []
    summary = summarize_collections(collections) if collections else None
    rows = audit_table(load_table(path), summary, include_invalid=include_invalid)
    return pd.DataFrame([describe_row(row) for row in rows])


def _choose(a: object, b: object, runs: object, store: object, store_b: object, verify: object) -> "RunChoice":
    """Return what is compared, as the command line takes it. Raise TypeError for an argument of a wrong type."""
    from runner.reporting.compared_runs import RunChoice

    if isinstance(a, str) != (b is None or isinstance(b, str)):
        raise TypeError("a, b: expected two ids of runs, or conditions for both sides")
    is_named = isinstance(a, str)
    return RunChoice(
        run_a=read_text(a, "a") if is_named else None,
        run_b=read_optional_text(b, "b") if is_named else None,
        a=() if is_named else read_conditions(a, "a"),
        b=() if is_named else read_conditions(b, "b"),
        run_patterns=tuple(read_ids(runs, "runs") or ()),
        store=read_text(store, "store"),
        store_b=read_optional_text(store_b, "store_b"),
        verify=read_files(verify, "verify"),
    )

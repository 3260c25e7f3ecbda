"""Compare what was measured, and audit what somebody states."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from benchmatrix.reading import DEFAULT_STORE, load_collections

if TYPE_CHECKING:  # pandas and the collector take a second to import: only what reads results does it
    import pandas as pd

    from collector.versus.question import CompareDocument

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
) -> "CompareDocument":
    """Return whether B is slower than A, cell by cell, as `benchmatrix compare --json` prints it.

    `a` and `b`: two run ids (`b`: None for the newest run of the store), or conditions that choose both sides from
    `runs` (patterns of ids; none for the newest run). `where` restricts both sides. `metric`: `step-time`,
    `time-per-sample`, `pipelined-step-time`, `peak-memory` or `energy`; None for the step time, and where the
    batches of the sides differ for the time per sample. `floor_percent`: smaller differences are taken for none.
    `benchmatrix schema compare` describes the document; ratios are B over A.
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
    from runner.stored_runs import compare_runs

    if isinstance(a, str) != (b is None or isinstance(b, str)):
        raise TypeError("a, b: expected two ids of runs, or conditions for both sides")
    return compare_runs(
        store,
        a if isinstance(a, str) else None,
        b if isinstance(b, str) else None,
        store_b=store_b,
        a=() if isinstance(a, str) else _write(a),
        b=_write(b) if isinstance(b, Mapping) else (),
        run_patterns=runs,
        where=_write(where or {}),
        metric=metric,
        floor=floor_percent,
        include_invalid=include_invalid,
    )[1]


def _write(conditions: Conditions) -> tuple[str, ...]:
    """Return fields with their values as the command line takes them: `batch_size=64`, `tf32=true`; 30.0 is 30."""
    texts = {
        field: str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else value
        for field, value in conditions.items()
    }
    return tuple(f"{field}={text}" for field, text in texts.items())


def audit(
    table: str | PathLike[str],
    runs: str | Sequence[str] = (),
    *,
    store: str = DEFAULT_STORE,
) -> "pd.DataFrame":
    """Return one row for each row of a table of stated times or rates, with its verdicts and the arithmetic.

    `table`: a YAML or CSV file (docs/audit.md), or the name of a table that comes with the tool. `runs`: measured runs
    that it is held against; none for arithmetic alone; Rates are in FLOP/s;
    `share_of_bound` is the stated rate over the highest that the device allows. Raise UserError if the table is wrong
    or a run is not there.

    >>> audit("nvidia-t4-resnet50")["verdict"].value_counts().to_dict()
    {'possible': 21}
    """
    import pandas as pd

    from collector.audit.page import describe_row
    from collector.audit.rows import audit_table
    from collector.results.summary import summarize_collections
    from runner.analysis_inputs import load_table

    collections = load_collections(runs, store) if runs else []
    summary = summarize_collections(collections) if collections else None
    rows = audit_table(load_table(str(table)), summary)
    return pd.DataFrame([describe_row(row) for row in rows])

"""Read what runs measured, as data frames; compare it, and audit what somebody states."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from bench.errors import UserError

if TYPE_CHECKING:  # pandas and the collector take a second to import: only what reads results does it
    import pandas as pd

    from collector.results.collection import Collection
    from collector.versus.question import CompareDocument

DEFAULT_STORE = "file://results"


def list_runs(store: str = DEFAULT_STORE) -> list[str]:
    """Return the ids of the runs in a store, in the order of their names.

    `store`: `file://FOLDER`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`.
    Raise UserError if the store is not there or cannot be read.

    >>> list_runs("file://docs/results/2026-11-21-h200")
    ['study-h200-2']
    """
    from runner.stored_runs import open_existing_store

    return sorted(open_existing_store(store, "store").list_run_ids())


def load_repeats(
    runs: str | Sequence[str] | None = None,
    store: str = DEFAULT_STORE,
) -> "pd.DataFrame":
    """Return one row for each planned repeat of the runs, with its status, its verdict and what it measured.

    The columns are those of the table `results` in docs/tables.md; times are in seconds, memory is in bytes. A repeat
    without a result has the status `missing`. `runs`: one id, several, or None for the newest run of the store.
    Raise UserError if a run is not there.

    >>> repeats = load_repeats("study-h200-2", "file://docs/results/2026-11-21-h200")
    >>> repeats["status"].value_counts().to_dict()
    {'ok': 54}
    """
    import pandas as pd

    return pd.concat([found.results for found in load_collections(runs, store)], ignore_index=True)


def load_cells(
    runs: str | Sequence[str] | None = None,
    store: str = DEFAULT_STORE,
) -> "pd.DataFrame":
    """Return one row for each cell of the runs: the centre of its valid repeats, its 95 % interval, its verdicts.

    The columns are those of the table `cells` in docs/tables.md.
    `runs`: as for `load_repeats`. Raise UserError if a run is not there.

    >>> cells = load_cells("study-h200-2", "file://docs/results/2026-11-21-h200")
    >>> best = cells[cells["phase"] == "train"].nlargest(1, "throughput_samples_per_s")
    >>> best[["model", "framework", "mode"]].values.tolist()
    [['resnet18', 'pytorch', 'eager']]
    """
    from collector.results.summary import summarize_collections

    return summarize_collections(load_collections(runs, store))


def load_steps(run: str | None = None, store: str = DEFAULT_STORE) -> "pd.DataFrame":
    """Return one row for each step of the attempts of a run that count, warm-up included: `seconds`, in their order.

    All steps are in memory then: a run of 10,000 cells has tens of millions. `run`: None for the newest run of the
    store. Raise UserError if the run is not there.

    >>> steps = load_steps("study-h200-2", "file://docs/results/2026-11-21-h200")
    >>> list(steps.columns)
    ['cell_id', 'repeat', 'tenant', 'kind', 'index', 'seconds', 'device_seconds']
    """
    (found,) = load_collections(run, store)
    return found.samples


def load_collections(runs: str | Sequence[str] | None, store: str) -> "list[Collection]":
    """Return the runs as the collector has them, each once. Raise UserError."""
    from collector.results.load import load_runs
    from runner.stored_runs import find_newest_run, open_existing_store

    opened = open_existing_store(store, "store")
    if runs is None:
        return load_runs(opened, [find_newest_run(opened).run_id])
    named = [runs] if isinstance(runs, str) else list(runs)
    if not named:
        raise UserError("runs: expected at least one id; give None for the newest run")
    return load_runs(opened, named)


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
    that it is held against; none for arithmetic alone. Rates are in FLOP/s;
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

"""Read what runs measured, as data frames."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.errors import UserError

if TYPE_CHECKING:  # pandas and the collector take a second to import: only what reads results does it
    import pandas as pd

    from collector.results.collection import Collection

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

"""Say which tenants fell out of memory, and how many of the others ran."""

import pandas as pd

from collector.facts import count_things
from collector.labels import count_tenants
from collector.results.cells import describe_cell
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS, Row, make_frame

OUT_OF_MEMORY = "oom"


def count_fallen(tenants: pd.DataFrame) -> dict[str, Row]:
    """Return, by cell, in how many repeats tenants fell out of memory, and how many did; cells without any left out.

    `tenants`: rows of TENANT_COLUMNS.
    """
    fallen = tenants[tenants["status"] == OUT_OF_MEMORY]
    numbers = tenants.groupby("cell_id")["tenant"].max() + 1
    found: dict[str, Row] = {}
    for cell_id, rows in fallen.groupby("cell_id", sort=False):
        counts = rows.groupby("repeat").size()
        span = f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"
        of_all = count_tenants(int(numbers[cell_id]))
        text = f"{span} of {of_all} in {count_things(len(counts), 'repeat')}"
        found[str(cell_id)] = {"num_fallen_repeats": len(counts), "fallen": text}
    return found


def select_fallen(collection: Collection) -> pd.DataFrame:
    """Return one row per tenant that fell out of memory: CELL_COLUMNS of its cell, and what it says of itself.

    `num_running`: how many tenants of its repeat ran to the end, in words.
    """
    tenants = collection.tenants
    cells = {planned.cell.cell_id: describe_cell(planned.cell) for planned in collection.run.cells}
    fallen = tenants[tenants["status"] == OUT_OF_MEMORY].reset_index(drop=True)
    ok = tenants[tenants["status"] == "ok"].groupby(["cell_id", "repeat"]).size()
    sizes = tenants.groupby(["cell_id", "repeat"]).size()
    keys = list(zip(fallen["cell_id"], fallen["repeat"], strict=True))
    running = [f"{ok.get(key, 0)} of {sizes[key] - 1}" for key in keys]
    names = ("repeat", "tenant", "peak_memory_reserved_bytes", "error_message")
    named = make_frame([cells[cell_id] for cell_id, _ in keys], CELL_COLUMNS)
    return named.assign(**{name: fallen[name] for name in names}, num_running=running)

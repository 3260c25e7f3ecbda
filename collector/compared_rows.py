"""Limit how many rows of the same work are compared, with each row of the other side."""

import pandas as pd

MAX_ROWS_OF_WORK = 50
"""Of the same work in one run, that only environments and protocols tell apart: their pairs grow with the square of
their number, and a setting that differs in each repeat, as a path of a temporary folder does, makes one of each."""


def limit_rows(rows: pd.DataFrame, work: list[str]) -> pd.DataFrame:
    """Return at most MAX_ROWS_OF_WORK rows of a summary that are equal in `work`: those with the most sound repeats.

    The notes of what is left say so. They are not chosen by their times; of equally many sound repeats both sides
    prefer the same hardware.
    """
    sizes = rows.groupby(work, dropna=False, sort=False)["cell_id"].transform("size")
    if sizes.max() <= MAX_ROWS_OF_WORK:
        return rows
    order = rows.sort_values(["num_sound", "hardware_id"], ascending=[False, True], kind="stable")
    places = order.groupby(work, dropna=False, sort=False).cumcount()
    is_limited = sizes > MAX_ROWS_OF_WORK
    texts = f"{MAX_ROWS_OF_WORK} of " + sizes.map("{:,}".format) + " cells and environments with this work are compared"
    notes = rows["note"].where(rows["note"] == "", rows["note"] + "; ") + texts
    return rows.assign(note=rows["note"].mask(is_limited, notes))[places.reindex(rows.index) < MAX_ROWS_OF_WORK]

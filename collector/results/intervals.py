"""Put a cell's centre and its interval into the columns of a summary, and read them back."""

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from collector.statistics import Estimate, estimate_machines

Row = dict[str, Any]

INTERVAL_COLUMNS = {
    "center_step_seconds": "float64",
    "interval_low_seconds": "float64",
    "interval_high_seconds": "float64",
    "log_standard_error": "float64",
    "degrees_of_freedom": "float64",
    "interval_method": "str",
    "interval_reason": "str",
    "num_machines": "int64",
    "machines": "str",
    "hostnames": "str",
    "instance_types": "str",
    "machine_step_seconds": "str",
}
"""`center_step_seconds`: the geometric mean of the repeats' `center_step_seconds`, or of the machines' where
there are several.
`interval_method`: what the interval was computed from; `interval_reason`: why there is none.
`hostnames`: the hosts, by name and what tells those of one name apart.
`instance_types`: the machine types of a cluster's nodes; missing where no placement says them.
`machine_step_seconds`: a JSON object, the geometric mean of the repeats' centres on each machine."""
NO_INTERVAL = "one repeat says nothing about the spread between repeats"


def describe_center(
    values: Sequence[float], machines: Sequence[str], hosts: Sequence[str], instance_types: Sequence[str | None]
) -> Row:
    """Return INTERVAL_COLUMNS of the repeats that a cell's figures come from: their centres, and where they ran."""
    estimate, means = estimate_machines(values, machines)
    unit = f"{len(means)} machines" if len(means) > 1 else f"{len(values)} repeats"
    row = _describe_estimate(estimate, f"Student's t, {unit}")
    return row | {
        "num_machines": len(means),
        "machines": "; ".join(sorted(means)),
        "hostnames": "; ".join(sorted(set(hosts))),
        "instance_types": _list_types(instance_types),
        "machine_step_seconds": json.dumps(means),
    }


def read_estimate(row: Row, suffix: str = "", *, center: str = "center_step_seconds") -> Estimate:
    """Return the estimate in a row, whose columns may carry `suffix`.

    `center`: the column of its centre: in a row of `summarize_cells` the seconds of a step, in one of `compare_cells`
    the `ratio`.
    """
    error, freedom = row[f"log_standard_error{suffix}"], row[f"degrees_of_freedom{suffix}"]
    return Estimate(
        center=float(row[f"{center}{suffix}"]),
        log_standard_error=None if pd.isna(error) else float(error),
        degrees_of_freedom=None if pd.isna(freedom) else float(freedom),
    )


def read_machine_means(row: Row, suffix: str = "") -> dict[str, float]:
    """Return the geometric mean of the repeats' centres (seconds) on each machine of a row of `summarize_cells`."""
    means: dict[str, float] = json.loads(row[f"machine_step_seconds{suffix}"])
    return means


def _list_types(types: Sequence[str | None]) -> str | None:
    """Return the machine types, `unknown` for repeats that do not say theirs; None where none does."""
    known = set(types) - {None}
    return "; ".join(sorted(kind or "unknown" for kind in set(types))) if known else None


def _describe_estimate(estimate: Estimate, method: str) -> Row:
    interval = estimate.interval
    low, high = interval or (None, None)
    return {
        "center_step_seconds": estimate.center,
        "interval_low_seconds": low,
        "interval_high_seconds": high,
        "log_standard_error": estimate.log_standard_error,
        "degrees_of_freedom": estimate.degrees_of_freedom,
        "interval_method": method if interval else None,
        "interval_reason": None if interval else NO_INTERVAL,
    }

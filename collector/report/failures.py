"""Describe the repeats that did not end ok, with the end of what they wrote."""

from dataclasses import dataclass

import pandas as pd

from collector.labels import add_labels
from collector.results.frames import Row, list_rows

MAX_STDERR_CHARACTERS = 4000


@dataclass(frozen=True, kw_only=True)
class FailureText:
    """One repeat that did not end ok, in words."""

    cell_id: str
    title: str
    status: str
    reason: str
    stderr_tail: str


def describe_failures(failures: pd.DataFrame) -> list[FailureText]:
    """Return a text for each row of `list_failures`."""
    return [
        FailureText(
            cell_id=row["cell_id"],
            title=f"{label}, repeat {row['repeat']}",
            status=row["status"],
            reason=_describe_failure(row),
            stderr_tail="" if pd.isna(row["stderr_tail"]) else row["stderr_tail"][-MAX_STDERR_CHARACTERS:],
        )
        for label, row in zip(add_labels(failures)["label"], list_rows(failures), strict=True)
    ]


def _describe_failure(row: Row) -> str:
    """Return the reason of a failure with what is known of the attempt that counts; most statuses say their kind."""
    kind = {"error_kind": "kind"} if row["status"] == "failed" else {}
    names = kind | {"exit_code": "exit code", "signal": "signal", "attempt": "attempt"}
    details = [f"{name} {row[field]}" for field, name in names.items() if not pd.isna(row[field])]
    if row["num_attempts"] > 1:
        details.append(f"{row['num_attempts']} attempts")
    return f"{row['error_message']} ({', '.join(details)})" if details else str(row["error_message"])

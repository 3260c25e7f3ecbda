"""Describe the repeats that did not end ok, with the end of what they wrote."""

from collections import defaultdict
from dataclasses import dataclass

import pandas as pd

from collector.labels import add_labels
from collector.results.frames import Row, list_rows

MAX_STDERR_CHARACTERS = 4000


@dataclass(frozen=True, kw_only=True)
class FailureText:
    """One repeat that did not end ok, in words, or several of a cell of which the same is to say."""

    cell_id: str
    title: str
    status: str
    reason: str
    stderr_tail: str


def describe_failures(failures: pd.DataFrame) -> list[FailureText]:
    """Return a text for each row of `list_failures`; repeats of a cell that wrote nothing and ended alike share one."""
    repeats: defaultdict[tuple[str, str, str, str, str], list[int]] = defaultdict(list)
    for label, row in zip(add_labels(failures)["label"], list_rows(failures), strict=True):
        tail: str = "" if pd.isna(row["stderr_tail"]) else row["stderr_tail"][-MAX_STDERR_CHARACTERS:]
        repeats[row["cell_id"], label, row["status"], _describe_failure(row), tail].append(row["repeat"])
    return [
        FailureText(
            cell_id=cell_id, title=f"{label}, {_name_repeats(numbers)}", status=status, reason=reason, stderr_tail=tail
        )
        for (cell_id, label, status, reason, tail), numbers in repeats.items()
    ]


def _name_repeats(numbers: list[int]) -> str:
    """Return `repeat 3`, `repeats 3 and 4` or `repeats 1, 2 and 5`."""
    first, last = numbers[:-1], numbers[-1]
    return f"repeats {', '.join(map(str, first))} and {last}" if first else f"repeat {last}"


def _describe_failure(row: Row) -> str:
    """Return the reason of a failure with what is known of the attempt that counts; most statuses say their kind."""
    kind = {"error_kind": "kind"} if row["status"] == "failed" else {}
    names = kind | {"exit_code": "exit code", "signal": "signal", "attempt": "attempt"}
    details = [f"{name} {row[field]}" for field, name in names.items() if not pd.isna(row[field])]
    if row["num_attempts"] > 1:
        details.append(f"{row['num_attempts']} attempts")
    return f"{row['error_message']} ({', '.join(details)})" if details else str(row["error_message"])

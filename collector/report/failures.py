"""Describe the repeats that did not end ok, with the end of what they wrote."""

from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from collector.labels import add_labels
from collector.results.frames import Row, list_rows

MAX_STDERR_CHARACTERS = 4000


@dataclass(frozen=True, kw_only=True)
class FailureText:
    """One repeat that did not end ok, in words, or several of a cell that no result was found of."""

    cell_id: str
    title: str
    status: str
    reason: str
    stderr_tail: str


def describe_failures(failures: pd.DataFrame) -> list[FailureText]:
    """Return a text for each row of `list_failures`; successive missing repeats of a cell share one."""
    rows = [
        row | {"label": label} for label, row in zip(add_labels(failures)["label"], list_rows(failures), strict=True)
    ]
    texts = []
    for _, group in groupby(rows, key=_identify_text):
        first, *others = group
        texts.append(
            FailureText(
                cell_id=first["cell_id"],
                title=f"{first['label']}, {_name_repeats([row['repeat'] for row in (first, *others)])}",
                status=first["status"],
                reason=_describe_failure(first),
                stderr_tail="" if pd.isna(first["stderr_tail"]) else first["stderr_tail"][-MAX_STDERR_CHARACTERS:],
            )
        )
    return texts


def _identify_text(row: Row) -> tuple[str, str, int | None]:
    """Return what is equal for rows that share a text; an attempt has an error and a log of its own."""
    return row["cell_id"], _describe_failure(row), None if row["status"] == "missing" else row["repeat"]


def _name_repeats(repeats: list[int]) -> str:
    if len(repeats) == 1:
        return f"repeat {repeats[0]}"
    return f"repeats {', '.join(map(str, repeats[:-1]))} and {repeats[-1]}"


def _describe_failure(row: Row) -> str:
    """Return the reason of a failure with what is known of the attempt that counts; most statuses say their kind."""
    kind = {"error_kind": "kind"} if row["status"] == "failed" else {}
    names = kind | {"exit_code": "exit code", "signal": "signal", "attempt": "attempt"}
    details = [f"{name} {row[field]}" for field, name in names.items() if not pd.isna(row[field])]
    if row["num_attempts"] > 1:
        details.append(f"{row['num_attempts']} attempts")
    return f"{row['error_message']} ({', '.join(details)})" if details else str(row["error_message"])

"""Describe the repeats that did not end ok, those that ended alike together, with the end of what one of them wrote."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from collector.labels import add_labels
from collector.results.frames import Row, list_rows
from collector.word_lists import count_things

MAX_STDERR_CHARACTERS = 4000


@dataclass(frozen=True, kw_only=True)
class FailureText:
    """The repeats that ended alike, in words."""

    cell_ids: tuple[str, ...]
    title: str
    """How many repeats of how many cells they are, or which of the only cell."""
    status: str
    reason: str
    members: tuple[str, ...]
    """Each cell with its repeats; none of a single cell, which the title names."""
    stderr_tail: str
    """The end of what one of them wrote; empty where none wrote anything."""
    writer: str
    """Whose output that is; empty where it is the only repeat's."""


def describe_failures(failures: pd.DataFrame) -> list[FailureText]:
    """Return a text for all rows of `list_failures` that ended in one way, the most frequent first."""
    alike: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in list_rows(add_labels(failures)):
        alike[row["status"], _describe_failure(row)].append(row)
    groups = sorted(alike.items(), key=lambda item: -len(item[1]))
    return [_describe_group(status, reason, rows) for (status, reason), rows in groups]


def _describe_group(status: str, reason: str, rows: Sequence[Row]) -> FailureText:
    by_cell: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_cell[row["cell_id"], row["label"]].append(row)
    members = tuple(f"{label}, {_name_repeats(own)}" for (_, label), own in by_cell.items())
    writer = next((row for row in rows if not pd.isna(row["stderr_tail"]) and row["stderr_tail"]), None)
    several = f"{count_things(len(rows), 'repeat')} of {count_things(len(by_cell), 'cell')}"
    return FailureText(
        cell_ids=tuple(cell_id for cell_id, _ in by_cell),
        title=members[0] if len(members) == 1 else several,
        status=status,
        reason=reason,
        members=() if len(members) == 1 else members,
        stderr_tail="" if writer is None else writer["stderr_tail"][-MAX_STDERR_CHARACTERS:],
        writer="" if writer is None or len(rows) == 1 else f"{writer['label']}, repeat {writer['repeat']}",
    )


def _name_repeats(rows: Sequence[Row]) -> str:
    """Return `repeat 3`, `repeats 3 and 4` or `repeats 1, 2 and 5`."""
    *first, last = [str(row["repeat"]) for row in rows]
    return f"repeats {', '.join(first)} and {last}" if first else f"repeat {last}"


def _describe_failure(row: Row) -> str:
    """Return the reason of a failure with what is known of the attempt that counts; most statuses say their kind."""
    kind = {"error_kind": "kind"} if row["status"] == "failed" else {}
    names = kind | {"exit_code": "exit code", "signal": "signal"}
    details = [f"{name} {row[field]}" for field, name in names.items() if not pd.isna(row[field])]
    if row["num_attempts"] > 1:
        details.append(f"the last of {row['num_attempts']} attempts")
    return f"{row['error_message']} ({', '.join(details)})" if details else str(row["error_message"])

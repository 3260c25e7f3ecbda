"""One precondition of a run in, what was found of it out: its name, whether it holds, and how to mend it."""

from dataclasses import dataclass
from typing import Any, Literal

from runner.kubernetes.connection import FORBIDDEN, NOT_FOUND, ApiError, BusyError, Connection

FindingState = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found of one precondition."""

    check: str
    """Which precondition, in a few words."""
    state: FindingState
    """`warning`: it could not be looked at, or a run may go well without it."""
    message: str
    hint: str = ""
    """How to mend it; empty where it holds."""
    details: tuple[str, ...] = ()
    """Lines below: groups of nodes, for one."""


def find_object(connection: Connection, path: str) -> dict[str, Any] | None:
    """Return an object, None where there is none; ApiError else."""
    try:
        return connection.get_object(path)
    except ApiError as error:
        if error.status == NOT_FOUND:
            return None
        raise


def explain_unchecked(check: str, error: ApiError) -> Finding:
    """Return the finding of a check that the API server refused, or did not answer."""
    if error.status == FORBIDDEN:
        return Finding(
            check=check,
            state="warning",
            message=f"not checked: you may not look: {error.message}",
            hint="have somebody run `benchmatrix doctor` who may, or go on without",
        )
    hint = "try again when it is back" if isinstance(error, BusyError) else "ask whoever runs the cluster"
    return Finding(check=check, state="failed", message=f"not checked: {error.message}", hint=hint)

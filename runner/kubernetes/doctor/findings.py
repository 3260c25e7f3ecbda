"""What doctor finds of one precondition of a run."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from runner.kubernetes.api_errors import ApiError, BusyError
from runner.kubernetes.connection import Connection

FindingState = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found of one precondition."""

    check: str
    """Which precondition, in a few words."""
    state: FindingState
    """`warning`: it could not be checked, or a run may go well without it."""
    message: str
    hint: str = ""
    """How to fix it; empty if the check passed."""
    details: tuple[str, ...] = ()
    """Lines printed below it, such as groups of nodes."""


def find_object(connection: Connection, path: str) -> dict[str, Any] | None:
    """Return an object, or None if there is none; ApiError if the server refuses."""
    try:
        return connection.get_object(path)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise


def explain_unchecked(check: str, error: ApiError) -> Finding:
    """Return the finding for a check that the API server refused or did not answer."""
    if error.status == HTTPStatus.FORBIDDEN:
        return Finding(
            check=check,
            state="warning",
            message=f"not checked: you lack the permission: {error.message}",
            hint="ask somebody with that permission to run `benchmatrix doctor`, or go on without",
        )
    hint = "try again when it is back" if isinstance(error, BusyError) else "ask the cluster's administrator"
    return Finding(check=check, state="failed", message=f"not checked: {error.message}", hint=hint)

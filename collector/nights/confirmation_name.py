"""Name the run that measures a night's suspicions again, so that every program that knows the night finds it."""

from bench.schema import hash_text
from bench.store import confirmation_run_id


def name_confirmation(matrix: str, run_id: str) -> str:
    """Return the id of the run that measures again what is suspected in the run `run_id` of a matrix."""
    return confirmation_run_id(hash_text(f"{matrix}/{run_id}"))

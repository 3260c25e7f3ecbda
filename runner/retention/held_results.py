"""Defines what retention asks of the data set: which raw results it holds, and how they ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.schema import Status, Verdict


@dataclass(frozen=True, kw_only=True)
class HeldResult:
    """A raw result whose rows are in the data set: the version of the object that they were made from."""

    num_bytes: int
    version: str
    status: Status
    attempt_seconds: float
    """From the start of the attempt to its end."""
    verdict: Verdict | None = None
    """None: it has none."""
    is_contaminated: bool | None = None
    """Whether `contaminated` is among the reasons of the verdict. None: not recorded."""


class HeldResults(Protocol):
    """The data set of a store, as far as retention needs it."""

    def read_held(self, run_id: str) -> Mapping[str, Sequence[HeldResult]]:
        """Return what the data set holds of a run, by key of the raw result: a row for each version of the object.

        An object that was written anew, as by a copy of the store, was collected in each of its versions.
        It is read from the rows themselves, not from a list beside them. UserError if it cannot be read.
        """

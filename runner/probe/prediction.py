"""Predict the largest batch that fits from the memory that smaller ones took, which grows with the batch in a line."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """What one batch that fits took of the memory that there was."""

    num_units: int
    """The batch, in multiples of the smallest."""
    needed_bytes: int
    available_bytes: int
    """What the batch could have taken at most, as its process saw it."""


def predict_limit(footprints: Sequence[Footprint]) -> int | None:
    """Return the largest number of units on the line of needed memory below what is available; None without a line.

    The line goes through the largest batch and the largest of at most half its size: neighbours would make a slope of
    their rounding. The most that any process saw available counts: allocators keep some of it for themselves.
    """
    if len(footprints) < 2:
        return None
    largest = max(footprints, key=lambda one: one.num_units)
    others = sorted((one for one in footprints if one.num_units < largest.num_units), key=lambda one: one.num_units)
    if not others:
        return None
    distant = [one for one in others if 2 * one.num_units <= largest.num_units] or others[:1]
    slope = (largest.needed_bytes - distant[-1].needed_bytes) / (largest.num_units - distant[-1].num_units)
    if slope <= 0:
        return None
    available = max(one.available_bytes for one in footprints)
    return max(0, largest.num_units + int((available - largest.needed_bytes) // slope))

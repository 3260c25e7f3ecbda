"""Makes what follows from the steps of a test's result follow from them: its roofline, and when it ended."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Any, Protocol

from bench.contradictions import count_work
from bench.peaks import find_gpu_peaks
from bench.schema import Cell, Gpu, HostPeak, Phases, Roofline
from bench.unsaid_verdicts import LENGTH_FACTOR
from bench.validity.series import MIN_STEPS


class Sink(Protocol):
    """Where documents can be put: a `bench.store.Store`, or a dict with a `put`."""

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`."""


def fit_roofline(
    given: Mapping[str, Any], default: Roofline, cell: Cell, step_seconds: float, gpus: Sequence[Gpu]
) -> Roofline:
    """Return a roofline of which everything follows from a step of this length; `given`: fields of the result.

    The work is that of the cell. What it has otherwise than `default` stays, of None all does: a share of a CPU's peak
    by the peak that it takes, and a share of the roofline by the shortest step. The peak of a GPU is that of the table,
    unless it has its own; that of a CPU is the largest of its figures; that of another device is high enough.
    """
    roofline: Roofline | None = given.get("roofline")
    fields = (roofline or default).model_dump()
    work, known = count_work(cell), _find_peak(given.get("host_peak"), cell, gpus)

    def is_own(name: str) -> bool:
        return bool(fields[name] != getattr(default, name))

    if known and not is_own("peak_flops_per_second"):
        fields["peak_flops_per_second"] = known
    if not step_seconds or fields["flops_per_step"] == 0:
        return Roofline(**fields)
    for name, count in (("flops_per_step", work.flops), ("min_bytes_per_step", work.min_bytes)) if work else ():
        fields[name] = fields[name] if is_own(name) else count
    peak, share = fields["peak_flops_per_second"], fields["share_of_peak"]
    achieved = fields["flops_per_step"] / step_seconds
    if peak is not None and share is not None and not known and not is_own("peak_flops_per_second"):
        peak = fields["peak_flops_per_second"] = achieved / share  # of a made-up device
    fields |= {"achieved_flops_per_second": achieved, "share_of_peak": None if peak is None else achieved / peak}
    if is_own("share_of_roofline") or (roofline is None or not is_own("min_step_seconds")):
        shortest = fields["share_of_roofline"]
        fields["min_step_seconds"] = None if shortest is None else shortest * step_seconds
    shortest = fields["min_step_seconds"]
    fields["share_of_roofline"] = None if shortest is None else shortest / step_seconds
    return Roofline(**fields)


def _find_peak(host: HostPeak | None, cell: Cell, gpus: Sequence[Gpu]) -> float | None:
    if cell.device == "gpu":
        return find_gpu_peaks([gpu.name for gpu in gpus], cell.precision).flops_per_second
    return None if host is None else host.flops_per_second


def count_steps(cell: Cell, step_seconds: float) -> int:
    """Return how many steps of this length a cell takes at the least, and so many that none calls them too short."""
    return max(cell.num_steps, ceil(cell.min_seconds / step_seconds), ceil(MIN_STEPS / LENGTH_FACTOR))


def find_end(fields: Mapping[str, Any], phases: Phases) -> datetime:
    """Return when an attempt with these fields ended that took ten seconds, or as long as its parts did."""
    parts = sum(value for value in phases.model_dump().values() if value is not None)
    parts += sum(found.seconds for name in ("pipelined", "sustained") if (found := fields.get(name)) is not None)
    parts += sum(use.window_seconds or 0.0 for use in fields["gpu_use"][:1])
    begun: datetime = fields["started_at"]
    return begun + timedelta(seconds=max(10.0, 1.0 + parts))

"""Decides for a group of tenants: whether they share one device, which window they are measured in, how it ended."""

from collections.abc import Mapping, Sequence

from bench.schema import Cell, CommonWindow, Failure, Sharing, Status, TenantPlace, TenantRecord

# The window is longer than the slowest tenant needs at the pace of the rehearsal: of steps that alternate, a second of
# it tells the pace to some tenths.
LENGTH_FACTOR = 1.2
# From the decision to the start of the window: everybody looks for it several times a second (bench.tenants.meeting),
# and a store answers within tenths of a second. Who steps looks between two steps only. A tenant that learns of it
# later has stepped all the same, and looked at the store once more.
LEAD_SECONDS, LEAD_STEPS = 0.5, 2.0
# How long everybody keeps its memory after the window: until tenant 0 has ended its last step and looked at the GPU.
HOLD_SECONDS, HOLD_STEPS = 0.5, 2.0
GRAVITY: tuple[Status, ...] = ("oom", "timeout", "failed", "preempted")
"""Which status a repeat has of those that its tenants ended with."""


def explain_apart(places: Mapping[int, TenantPlace], sharing: Sharing) -> str | None:
    """Return why these tenants do not share one device in the way asked for, in one line; None where they do.

    What cannot be read of a tenant is not held against it.
    """
    for name, found in (
        ("machine (boot id)", {place.boot_id for place in places.values()}),
        ("time namespace", {place.time_namespace for place in places.values()}),
    ):
        if len(found - {None}) > 1:
            return f"the tenants are not on one {name}, so they have no common clock: {_list(found)}"
    devices = [place.device for place in places.values() if place.device is not None]
    if sharing == "mig" and len(set(devices)) < len(devices):
        return f"tenants have the same MIG slice, where each needs one of its own: {_list(set(devices))}"
    if sharing != "mig" and len(set(devices)) > 1:
        return f"the tenants are not on one GPU: {_list(set(devices))}"
    without = [tenant for tenant, place in places.items() if place.is_under_mps is not None]
    without = [tenant for tenant in without if places[tenant].is_under_mps != (sharing == "mps")]
    if without:
        state = "is not in force" if sharing == "mps" else f"is in force, where the cell asks for {sharing}"
        return f"MPS {state} for {name_tenants(without)}"
    return None


def choose_window(paces: Sequence[float], cell: Cell, now: float) -> CommonWindow:
    """Return the common window of tenants that need so many seconds per step while all step; `now` by their clock."""
    slowest = max(paces)
    start = now + LEAD_SECONDS + LEAD_STEPS * slowest
    end = start + max(cell.min_seconds, LENGTH_FACTOR * cell.num_steps * slowest)
    return CommonWindow(
        start_seconds=start, end_seconds=end, hold_until_seconds=end + HOLD_SECONDS + HOLD_STEPS * slowest
    )


def judge_group(records: Sequence[TenantRecord], called_off: str | None) -> tuple[Status, Failure | None]:
    ended = [record for record in records if record.error is not None]
    # Who only waited in vain for a window does not say why there was none.
    culprits = [record for record in ended if record.error and record.error.kind != "no-common-window"]
    if not ended and called_off is None:
        return "ok", None
    if not culprits:
        reasons = [called_off, *(record.error.message for record in ended if record.error)]
        return "failed", Failure(kind="no-common-window", message=next(filter(None, reasons)))
    status = min((record.status for record in culprits), key=GRAVITY.index)
    chosen = [record for record in culprits if record.status == status]
    first = chosen[0].error
    assert first is not None
    verb = "fell out of memory" if status == "oom" else f"ended '{status}'"
    message = f"{len(chosen)} of {len(records)} tenants {verb}; tenant {chosen[0].tenant}: {first.message}"
    return status, first.model_copy(update={"message": message})


def name_tenants(numbers: Sequence[int]) -> str:
    return f"tenant{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"


def _list(found: set[str | None] | set[str]) -> str:
    return ", ".join(sorted(str(item) for item in found if item is not None))

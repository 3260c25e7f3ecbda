"""Keeps what this tool measured itself within the bounds of its documents, so that a broken clock loses no record.

What only observes the machine is left out and named, a single value of it where that can be; a time of the measurement
makes it a failed attempt, which names the value and keeps the rest. The time of day is moved to the nearest that a
document can hold (bench.schema.time_of_day).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from bench.errors import UserError
from bench.schema import Failure, Memory, Phases, Result
from bench.schema.document import MAX_BYTES, MAX_STEP_SECONDS, MIN_STEP_SECONDS

T = TypeVar("T")

MAX_LINE_CHARACTERS = 500
OBSERVED = frozenset(
    {"pipelined", "sustained", "cpu_use", "gpu_use", "device_profile", "roofline", "host_peak", "calibration"}
)
"""The fields of a Result without which its times stand. They are left out as a whole: their values belong together."""
WITHOUT: Mapping[str, Any] = {"gpu_use": (), "phases": Phases()}
"""What stands for a part that is left out, where that is not None."""
IDENTITY = ("run_id", "cell", "cell_id", "repeat", "attempt", "written_by", "started_at", "finished_at")


def check_steps(name: str, step_seconds: Sequence[float]) -> None:
    """Raise UserError where a step took less than a nanosecond by the clock, or more than a day."""
    for seconds in step_seconds:
        if seconds < MIN_STEP_SECONDS:
            raise UserError(
                f"{name}: a step took {seconds:g} s by this machine's clock (CLOCK_MONOTONIC), which cannot tell its "
                "steps apart; look at /sys/devices/system/clocksource/clocksource0/current_clocksource, or give larger "
                "steps"
            )
        if seconds > MAX_STEP_SECONDS:
            raise UserError(f"{name}: a step took {seconds:,.0f} s, more than a day; give a smaller batch")


def keep_series(
    failures: list[str],
    name: str,
    series: Sequence[float],
    *,
    least: float = MIN_STEP_SECONDS,
    most: float = MAX_STEP_SECONDS,
) -> tuple[float, ...] | None:
    """Return these seconds of steps; None, and a note among the `failures`, where a document cannot hold one of them.

    They are left out together: which time belongs to which step is told by its place alone.
    """
    beyond = [(number, seconds) for number, seconds in enumerate(series, start=1) if not least <= seconds <= most]
    if not beyond:
        return tuple(series)
    number, seconds = beyond[0]
    failures.append(
        f"{name}: {len(beyond)} of {len(series)} are not between {least:g} and {most:g} s, the first {seconds:g} s at "
        f"step {number}; all left out"
    )
    return None


def describe_violation(error: Exception) -> str | None:
    """Return the first value that a document cannot hold: where it stands, its bound, and what it is.

    None of an error that says nothing of the kind.
    """
    if not isinstance(error, ValidationError):
        return None
    return _describe_violations(error)[0]


def try_probe(failures: list[str], name: str, probe: Callable[[], T], fallback: T) -> T:
    """Return what `probe` returns; `fallback`, and a note among the `failures`, where it raises."""
    try:
        return probe()
    except Exception as error:  # whatever it is: the timing is worth more than a probe
        text = str(error).strip().splitlines() or ["no message"]
        said = describe_violation(error) or f"{type(error).__name__}: {text[0]}"
        failures.append(f"{name}: {said}"[:MAX_LINE_CHARACTERS])
        return fallback


def check_bytes(sizes: Sequence[int]) -> None:
    """Raise ValueError where a size in bytes, or all of them together, are more than a document can hold."""
    if min(sizes) < 0 or sum(sizes) > MAX_BYTES:
        raise ValueError(f"{max(sizes, key=abs)} bytes, where a document holds 0 to {MAX_BYTES}")


def make_memory(failures: list[str], sizes: Mapping[str, int | None]) -> Memory:
    """Return the peaks of these sizes in bytes; one that no document can hold is left out and noted in `failures`."""
    try:
        return Memory(**sizes)
    except ValidationError as error:
        failures += _describe_violations(error, "; left out")
        return Memory(**{**sizes, **dict.fromkeys(_list_places(error, 0))})


def make_record(fields: Mapping[str, Any]) -> Result:
    """Return the Result of these fields; where values are out of their bounds, without them, which are named.

    A measurement that is not complete without them is `failed`, and says so. What ended otherwise keeps its status.
    """
    try:
        return Result(**fields)
    except ValidationError as error:
        violation = error
    names = _list_places(violation, 0)
    kept = {**fields, **{name: _leave_out(name, fields[name], violation) for name in names}}
    if names:
        notes = _describe_violations(violation, "; left out")
        kept["probe_failures"] = (*fields["probe_failures"], *notes)
    is_ok = fields["status"] == "ok"
    failure = _make_failure(violation)
    if not is_ok and kept["error"] is None:
        kept["error"] = failure
    for changes in ({}, {"status": "failed", "error": failure}) if is_ok else ({},):
        try:
            return Result(**{**kept, **changes})
        except ValidationError:  # not complete without what was left out
            continue
    # Parts that contradict each other: each is within its bounds, and none of them can be named.
    ending: dict[str, Any] = {
        "status": "failed" if is_ok else fields["status"],
        "error": failure if is_ok else kept["error"],
    }
    return Result(**{name: kept[name] for name in (*IDENTITY, "probe_failures")}, **ending)


def _make_failure(violation: ValidationError) -> Failure:
    message = f"the measurement gave what no record can hold: {describe_violation(violation)}"
    return Failure(kind="exception", message=message[:MAX_LINE_CHARACTERS])


def _leave_out(name: str, part: Any, error: ValidationError) -> Any:
    """Return the part of a Result without its values that broke a bound, or what stands for it as a whole."""
    nothing = WITHOUT.get(name)
    places = _list_places(error, 1, name)
    if name in OBSERVED or not places:
        return nothing
    try:
        return type(part).model_validate(part.model_copy(update=dict.fromkeys(places)))
    except ValidationError:  # it is nothing without them
        return nothing


def _list_places(error: ValidationError, depth: int, first: str | None = None) -> list[str]:
    """Return the names at this depth of the places that broke a bound, of those below `first` where it is given."""
    places = [one["loc"] for one in error.errors() if first is None or one["loc"][:1] == (first,)]
    return list(dict.fromkeys(str(place[depth]) for place in places if len(place) > depth))


def _describe_violations(error: ValidationError, end: str = "") -> list[str]:
    """Return a line for each field that broke a bound, with the first value of a series that did."""
    lines: dict[tuple[int | str, ...], str] = {}
    for one in error.errors(include_url=False, include_context=False):
        place = ".".join([error.title, *(str(part) for part in one["loc"])])
        line = f"{place}: {one['msg']}, found {str(one['input'])[:100]}"
        lines.setdefault(one["loc"][:2], line[: MAX_LINE_CHARACTERS - len(end)] + end)
    return list(lines.values())

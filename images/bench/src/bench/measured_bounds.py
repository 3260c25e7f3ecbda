"""Keeps what this tool measured itself within the bounds of its documents, so that a broken clock loses no record.

A part that only observes the machine is left out and named; a time of the measurement makes it a failed attempt, which
names the value. The time of day is moved to the nearest that a document can hold (bench.schema.time_of_day).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from bench.errors import UserError
from bench.schema import Failure, Result
from bench.schema.document import MAX_STEP_SECONDS, MIN_STEP_SECONDS

MAX_LINE_CHARACTERS = 500
OBSERVED = frozenset(
    {"pipelined", "sustained", "cpu_use", "gpu_use", "device_profile", "roofline", "host_peak", "calibration"}
)
"""The fields of a Result without which its times stand."""


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


def are_steps(step_seconds: Sequence[float]) -> bool:
    """Return whether all of these are times of steps that a document can hold."""
    return all(MIN_STEP_SECONDS <= seconds <= MAX_STEP_SECONDS for seconds in step_seconds)


def describe_violation(error: Exception) -> str | None:
    """Return the first value that a document cannot hold: where it stands, its bound, and what it is.

    None of an error that says nothing of the kind.
    """
    if not isinstance(error, ValidationError):
        return None
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join([error.title, *(str(part) for part in first["loc"])])
    return f"{place}: {first['msg']}, found {str(first['input'])[:100]}"[:MAX_LINE_CHARACTERS]


def make_record(fields: Mapping[str, Any]) -> Result:
    """Return the Result of these fields; where a value is out of its bounds, without the part that has it."""
    try:
        return Result(**fields)
    except ValidationError as error:
        parts = {str(one["loc"][0]) for one in error.errors() if one["loc"]}
        if parts and parts <= OBSERVED:
            left_out: dict[str, Any] = {name: () if name == "gpu_use" else None for name in parts}
            note = f"{describe_violation(error)}; left out"
            return make_record({**fields, **left_out, "probe_failures": (*fields["probe_failures"], note)})
        message = f"the measurement gave what no record can hold: {describe_violation(error)}"
    identity = ("run_id", "cell", "cell_id", "repeat", "attempt", "written_by", "started_at", "finished_at")
    failure = Failure(kind="exception", message=message[:MAX_LINE_CHARACTERS])
    return Result(
        **{name: fields[name] for name in identity},
        status="failed",
        error=failure,
        probe_failures=fields["probe_failures"],
    )

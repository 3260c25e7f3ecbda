"""Probes read the state of the machine from /proc, the cgroup and NVML. One that fails is named in the record."""

from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from bench.schema import describe_error

T = TypeVar("T")

MAX_LINE_CHARACTERS = 500


def try_probe(failures: list[str], name: str, probe: Callable[[], T], fallback: T) -> T:
    """Return what `probe` returns; `fallback`, and a note among the `failures`, where it raises."""
    try:
        return probe()
    except Exception as error:  # whatever it is: the timing is worth more than a probe
        text = str(error).strip().splitlines() or ["no message"]
        said = describe_error(error) if isinstance(error, ValidationError) else f"{type(error).__name__}: {text[0]}"
        failures.append(f"{name}: {said}"[:MAX_LINE_CHARACTERS])
        return fallback

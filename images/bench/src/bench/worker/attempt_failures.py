"""Describes the errors that end attempts: their status, their kind, and a line for people."""

import re
import traceback

from bench.errors import UserError
from bench.frameworks.interface import Framework
from bench.measured_bounds import describe_violation
from bench.redaction import hide_secrets
from bench.schema import Failure, Status
from bench.tenants.meeting import NoCommonWindowError
from bench.worker.out_of_memory import parse_requested_bytes

TRACEBACK_CHARACTERS = 8_000
MESSAGE_CHARACTERS = 500
# TensorFlow's words for what did not fit, on lines below the layer's name (eager) or the traceback of the graph.
CAUSE_WORDS = ("OOM when allocating", "failed to allocate memory")


def describe_failure(error: Exception, framework: Framework | None) -> tuple[Status, Failure]:
    """Return the status and reason of an attempt that this error ended; call it while the error is handled.

    `framework`: None where it was not imported yet.
    """
    if isinstance(error, NoCommonWindowError):
        return "failed", Failure(kind="no-common-window", message=make_printable(str(error))[:MESSAGE_CHARACTERS])
    if isinstance(error, UserError):  # about the user's data: no traceback is needed
        return "failed", Failure(kind="exception", message=make_printable(str(error))[:MESSAGE_CHARACTERS])
    message = summarize_error(error)
    tail = make_printable(traceback.format_exc())[-TRACEBACK_CHARACTERS:]
    if isinstance(error, ImportError) and framework is None:
        return "failed", Failure(kind="missing-framework", message=message, stderr_tail=tail)
    if isinstance(error, MemoryError) or (framework and framework.is_out_of_memory(error)):
        requested = parse_requested_bytes(make_printable(str(error)))
        failure = Failure(kind="out-of-memory", message=message, stderr_tail=tail)
        # Not checked here: `make_record` leaves out, and names, an amount that no document can hold.
        return "oom", failure.model_copy(update={"bytes_requested": requested})
    return "failed", Failure(kind="exception", message=message, stderr_tail=tail)


def summarize_error(error: Exception) -> str:
    """Return one line for people: the error's type and its first line, or the line with CAUSE_WORDS."""
    if violation := describe_violation(error):  # of a part of the record
        return f"the measurement gave what no record can hold: {violation}"[:MESSAGE_CHARACTERS]
    lines = [line.strip() for line in make_printable(str(error)).splitlines() if line.strip()]
    with_cause = [line for line in lines if any(words in line for words in CAUSE_WORDS)]
    return f"{type(error).__name__}: {[*with_cause, *lines, 'no message'][0]}"[:MESSAGE_CHARACTERS]


def make_printable(text: str) -> str:
    """Return `text` without colour codes and credentials, and with `?` for what UTF-8 cannot hold."""
    return hide_secrets(re.sub(r"\x1b\[[0-9;]*m", "", text).encode(errors="replace").decode())

"""Failure: how an attempt ended, and why it did not end well."""

from typing import Literal

from bench.schema.document import Bytes, Document, Integer

Status = Literal["ok", "failed", "oom", "timeout", "preempted"]
FailureKind = Literal[
    "exception",
    "missing-framework",
    "out-of-memory",
    "killed",
    "exit",
    "timeout",
    "preempted",
    # Of several tenants: they did not all step at once, or not on one device.
    "no-common-window",
    # Of a cluster: the container never started, or its node could not hold it.
    "bad-image",
    "bad-configuration",
    "unschedulable",
    "infrastructure",
]


class Failure(Document):
    """Why a repeat did not end well."""

    kind: FailureKind
    message: str
    """One line for people."""
    exit_code: Integer | None = None
    signal: str | None = None
    """Name of the signal that ended the process, such as `SIGSEGV`."""
    bytes_requested: Bytes | None = None
    """What the allocation that failed had asked for, where the framework says it."""
    stderr_tail: str = ""
    """The end of what the process wrote to stdout and stderr, or the traceback."""

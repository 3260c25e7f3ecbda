"""Says whether this process may open as many files as the tool needs, before a library in Rust panics for want of one.

Imports the standard library alone, to be quick.
"""

import resource

MIN_FILES = 64
"""Twice what a run and its report hold open at once on two cores, and more than a measurement does. 1024 is usual."""


def explain_file_limit() -> str | None:
    """Return a message where the limit of open files (`ulimit -n`) is below MIN_FILES; None where it is not."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY or limit >= MIN_FILES:
        return None
    return f"this process may open {limit} files, and needs {MIN_FILES} at the least; raise the limit (`ulimit -n`)"

"""What the exit codes of `python -m bench` mean: to people, to the runner and to a Job's podFailurePolicy."""

EXIT_OK = 0
"""The record says ok."""
EXIT_NOT_OK = 1
"""The record says why not."""
EXIT_USER_ERROR = 2
"""The order or the store is wrong; there is no record."""

# What a shell and a container runtime give where the program could not be run, or a signal ended it (128 + its number).
NOT_EXECUTABLE, NOT_FOUND = 126, 127
BY_ABORT, BY_KILL, BY_SEGMENTATION_FAULT, BY_TERMINATION = 134, 137, 139, 143

FINAL_EXIT_CODES = frozenset(
    {
        EXIT_NOT_OK,
        EXIT_USER_ERROR,
        NOT_EXECUTABLE,
        NOT_FOUND,
        BY_ABORT,
        BY_KILL,
        BY_SEGMENTATION_FAULT,
        BY_TERMINATION,
    }
)
"""Ends that a new container would meet again. A pod that a disruption of its node ended is told apart by its condition
DisruptionTarget, whatever its exit code."""

"""What the exit codes of `python -m bench` mean: to people, to the runner and to a Job's podFailurePolicy."""

EXIT_OK = 0
"""The record says ok."""
EXIT_NOT_OK = 1
"""The record says why not."""
EXIT_USER_ERROR = 2
"""The order, the store or the machine is not what the cell needs; there is no record, the last line says why."""
EXIT_RESULT_IN_LOG = 3
"""The store could not be reached at the end: the record is a marked line of the log; see bench.delivery."""
EXIT_TRY_AGAIN = 4
"""The store cannot be reached, or somebody else uses the GPU: nothing was measured, another try may go well."""
EXIT_PREEMPTED = 5
"""Ended by SIGTERM in the midst of it: what was measured so far lies beside the results."""
EXIT_FAULT = 70
"""EX_SOFTWARE of sysexits.h: a fault of this package; there is no record, the log ends with a traceback."""

# What a shell and a container runtime give where the program could not be run, or a signal ended it (128 + its number).
NOT_EXECUTABLE, NOT_FOUND = 126, 127
BY_ABORT, BY_KILL, BY_SEGMENTATION_FAULT, BY_TERMINATION = 134, 137, 139, 143

FINAL_EXIT_CODES = frozenset(
    {
        EXIT_NOT_OK,
        EXIT_USER_ERROR,
        EXIT_RESULT_IN_LOG,
        EXIT_FAULT,
        NOT_EXECUTABLE,
        NOT_FOUND,
        BY_ABORT,
        BY_KILL,
        BY_SEGMENTATION_FAULT,
    }
)
"""Ends that a new container would meet again, or that leave nothing to do."""

INTERRUPTED_EXIT_CODES = frozenset({EXIT_PREEMPTED, BY_TERMINATION})
"""Ends that are not the cell's own: it is measured again, and that is not counted. So it is where a disruption of the
node ended the pod, whatever the exit code: the pod's condition DisruptionTarget tells."""

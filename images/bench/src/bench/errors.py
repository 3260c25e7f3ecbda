"""Errors that the user can fix, reported as one message without a traceback, and the exit codes of `python -m bench`.

The runner and a Job's podFailurePolicy act on the codes.
"""

EXIT_OK = 0
"""The record says ok."""
EXIT_NOT_OK = 1
"""The record says why not."""
EXIT_USER_ERROR = 2
"""The order, the store or the machine is not what the cell needs; there is no record, the last line says why."""
EXIT_RESULT_IN_LOG = 3
"""The store could not be reached at the end: the record is a marked line of the log; see bench.worker.delivery."""
EXIT_TRY_AGAIN = 4
"""The store cannot be reached, or somebody else uses the GPU: nothing was measured, another try may succeed."""
EXIT_PREEMPTED = 5
"""Ended by SIGTERM during the measurement: what was measured so far lies beside the results."""
EXIT_NODE_FAULT = 6
"""The machine cannot measure any cell of this kind: its GPU, driver or disk fails. Nothing was measured, there is no
record, the last line says why; another machine may measure the cell."""
# 7 is not used: it had a meaning once.
EXIT_INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h: an error in this package; there is no record, the log ends with a traceback."""

# What a shell and a container runtime give where the command could not be run (POSIX.1-2017, Shell Command Language,
# 2.8.2), or where a signal ended it: 128 + its number.
EXIT_COMMAND_NOT_EXECUTABLE, EXIT_COMMAND_NOT_FOUND = 126, 127
EXIT_SIGINT, EXIT_SIGABRT, EXIT_SIGKILL, EXIT_SIGSEGV, EXIT_SIGTERM = 130, 134, 137, 139, 143

FINAL_EXIT_CODES = frozenset(
    {
        *(EXIT_NOT_OK, EXIT_USER_ERROR, EXIT_RESULT_IN_LOG, EXIT_NODE_FAULT, EXIT_INTERNAL_ERROR),
        *(EXIT_COMMAND_NOT_EXECUTABLE, EXIT_COMMAND_NOT_FOUND, EXIT_SIGABRT, EXIT_SIGKILL, EXIT_SIGSEGV),
    }
)
"""Exit codes after which the Job makes no other pod: it would end the same way, or nothing is left to do. After
EXIT_NODE_FAULT the runner makes another Job, since a pod of the same Job would go to the same node."""

INTERRUPTED_EXIT_CODES = frozenset({EXIT_PREEMPTED, EXIT_SIGTERM})
"""Exit codes that are not the cell's failure: it is measured again without counting against the backoff limit. The same
holds, whatever the exit code, for a pod with the condition DisruptionTarget: a disruption of its node ended it."""


class UserError(Exception):
    """An error that the user can fix. Shown without a traceback; the process ends with exit code 2.

    The message names the file (or setting), the key, what was expected and how to fix it.
    """


class TransientError(UserError):
    """An error that may pass by itself, such as a server that does not answer at present."""


class NodeFaultError(UserError):
    """The machine is at fault, not the cell or its order: another machine may measure the cell."""

"""The exit codes of the command line; 0 says that all is well."""

EXIT_NOT_OK = 1
"""A repeat did not end well or is missing, the run was cancelled, a check of `doctor` failed, or B is worse than A; of
`watch`: the newest night confirmed a regression."""
EXIT_USER_ERROR = 2
EXIT_PENDING = 3
"""`watch`: something is suspected and has to be measured again."""
EXIT_INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h: an error in the tool."""
EXIT_TEMPORARY_FAILURE = 75
"""EX_TEMPFAIL of sysexits.h: the store or the API server is unreachable; the same command may succeed later."""
EXIT_INTERRUPTED = 130
"""The code that a shell gives: 128 plus the number of SIGINT."""


def find_end_code(interrupt: KeyboardInterrupt) -> int:
    """Return the exit code for what interrupted a command: Ctrl-C, SIGTERM or SIGHUP, as a shell gives it."""
    from runner.local.run import EndRequested

    return 128 + interrupt.signal_number if isinstance(interrupt, EndRequested) else EXIT_INTERRUPTED

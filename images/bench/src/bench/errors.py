"""Errors that the user can fix, reported as one message without a traceback."""


class UserError(Exception):
    """An error that the user can fix. Shown without a traceback; the process ends with exit code 2.

    The message names the file (or setting), the key, what was expected and how to fix it.
    """


class TransientError(UserError):
    """An error that may pass by itself, such as a server that does not answer at present."""


class NodeFaultError(UserError):
    """The machine is at fault, not the cell or its order: another machine may measure the cell."""

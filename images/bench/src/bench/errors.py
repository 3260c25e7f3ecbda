"""Faults of the user: one message that says where, what was expected and how to mend it."""


class UserError(Exception):
    """A fault that the user can mend. Shown without a traceback; the process ends with exit code 2.

    The message names the file (or setting), the key, what was expected and how to mend it.
    """


class TransientError(UserError):
    """What may go well later without anybody mending it: a server that does not answer at present."""

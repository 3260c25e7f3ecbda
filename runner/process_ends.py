"""Name the signal that ended a process, and recognise C++'s failed allocation in its output."""

import signal

# In the last line of a process that did not catch what C++ throws when an allocation fails.
BAD_ALLOC = "std::bad_alloc"


def name_signal(number: int) -> str:
    """Return `SIGSEGV` for 11; most real-time signals have only a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

"""Says what this machine gave no more of: memory, disk, open files, threads. Nobody made a mistake there."""

import errno

_BY_NUMBER = {
    errno.EMFILE: "this process may open no more files; raise the limit (`ulimit -n`)",
    errno.ENFILE: "this machine can open no more files; end what holds many of them",
    errno.ENOMEM: "no memory is left; free some, or raise the limit (`ulimit -v`, or the container's)",
    errno.EAGAIN: "no thread or process can be started; free memory, or raise the limit (`ulimit -u`, `ulimit -v`, or "
    "the container's)",
}


def explain_exhaustion(error: BaseException) -> str | None:
    """Say in words which resource ran out, and how to raise its limit; return None if the error has another cause."""
    if isinstance(error, MemoryError):
        return _BY_NUMBER[errno.ENOMEM]
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            place = "" if error.filename is None else f"of {str(error.filename)!r} "
            return f"the disk {place}is full; free some space, or name another place"
        return _BY_NUMBER.get(error.errno or 0)
    return _BY_NUMBER[errno.EAGAIN] if "can't start new thread" in str(error) else None

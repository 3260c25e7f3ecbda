"""Says what this machine gave no more of: memory, open files, threads. Neither the user nor the tool made a mistake."""

import errno
import re

_BY_NUMBER = {
    errno.EMFILE: "this process may open no more files; raise the limit (`ulimit -n`)",
    errno.ENFILE: "this machine can open no more files; end what holds many of them",
    errno.ENOMEM: "no memory is left; free some, or raise the limit (`ulimit -v`, or the container's)",
    errno.EAGAIN: "no thread or process can be started; free memory, or raise the limit (`ulimit -u`, `ulimit -v`, or "
    "the container's)",
}
# What has no number: Python's threads and the linker's libraries. Rust's panics have the system's in their text.
_BY_TEXT = {
    "can't start new thread": errno.EAGAIN,
    "failed to map segment": errno.ENOMEM,
    "cannot allocate memory": errno.ENOMEM,
}
_RUST_NUMBER = re.compile(r"Os \{ code: (\d+)")


def explain_exhaustion(error: BaseException) -> str | None:
    """Return what is used up and how to get more, in words; None where an error has another reason."""
    if isinstance(error, MemoryError):
        return _BY_NUMBER[errno.ENOMEM]
    if isinstance(error, OSError):
        return _BY_NUMBER.get(error.errno or 0)
    text = str(error)
    if found := _RUST_NUMBER.search(text):
        return _BY_NUMBER.get(int(found[1]))
    return next((_BY_NUMBER[number] for words, number in _BY_TEXT.items() if words in text.lower()), None)

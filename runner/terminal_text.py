"""Texts of progress lines, for runs on this machine and on clusters: colours of a status, durations, messages."""

STATUS_STYLES = {"ok": "green", "failed": "red", "oom": "red", "timeout": "red", "preempted": "yellow"}


def format_wait(seconds: float) -> str:
    """Return a duration as people say it: `40 s`, `3 min`, `2 h 5 min`."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def join_printable(message: str) -> str:
    """Return a message on one line, without characters that would move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in message)

"""Tell people at a terminal what happens now and what to do next; logs and pipes get results only."""

import shlex

from runner.commands.options import make_error_console


def say(text: str) -> None:
    """Print a line in dim letters to stderr, if that is a terminal."""
    console = make_error_console()
    if console.is_terminal:
        console.print(text, style="dim", soft_wrap=True)


def say_next(*commands: str) -> None:
    """Print what to do next, as `say` does."""
    say(f"next: {'; or '.join(commands)}")


def format_place(on: str, profile: str | None, namespace: str | None, queue: str | None = None) -> str:
    """Return the options that lead a command to the same place on a cluster, as they were given, quoted for a shell."""
    given = {"--on": on, "--profile": profile, "--namespace": namespace, "--queue": queue}
    return shlex.join(word for name, value in given.items() if value is not None for word in (name, value))

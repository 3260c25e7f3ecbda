"""The command `version`."""

from bench import __version__
from runner.terminal_text import echo


def version() -> None:
    """Print the version of the tool."""
    echo(__version__)

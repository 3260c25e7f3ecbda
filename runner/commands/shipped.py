"""Print what comes with the tool: what `--list` of a command shows."""

from collections.abc import Mapping

from runner.commands.options import CONSOLE


def print_shipped(shipped: Mapping[str, str]) -> None:
    """Print names with what each is, a line each."""
    for name, text in shipped.items():
        CONSOLE.print(f"{name}: {text}", soft_wrap=True)

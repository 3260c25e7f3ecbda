"""Print what comes with the tool: what `--list` of a command shows."""

from collections.abc import Mapping

from runner.commands.options import CONSOLE
from runner.terminal_text import echo


def print_shipped(shipped: Mapping[str, str], *, as_json: bool) -> None:
    """Print names with what each is: a line each, or one JSON document."""
    from runner.commands.change_documents import ShippedDocument

    if as_json:
        echo(ShippedDocument(shipped=dict(shipped)).model_dump_json())
        return
    for name, text in shipped.items():
        CONSOLE.print(f"{name}: {text}", soft_wrap=True)

"""Print the files that a command wrote, for programs."""

from collections.abc import Sequence
from pathlib import Path

from runner.terminal_text import echo


def print_files(run_id: str, paths: Sequence[Path]) -> None:
    """Print the files that were written about a run as one JSON document."""
    from runner.commands.json_documents import FilesDocument

    echo(FilesDocument(run_id=run_id, files=tuple(map(str, paths))).model_dump_json())

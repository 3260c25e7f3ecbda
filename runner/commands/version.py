"""The command `version`."""

import typer

from bench import __version__


def version() -> None:
    """Print the version of the tool."""
    typer.echo(__version__)

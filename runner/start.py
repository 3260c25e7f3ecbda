"""The entry point of the installed script."""

from runner.cli import main

__all__ = ["main"]

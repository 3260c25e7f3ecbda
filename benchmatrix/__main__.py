"""Run the command line as `python -m benchmatrix`."""

from runner.cli import main

main()

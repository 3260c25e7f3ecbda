"""Run the command line as `python -m benchmatrix`."""

from runner.start import main

main()

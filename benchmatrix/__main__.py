"""The command line: `benchmatrix`, or `python -m benchmatrix`."""

from runner.cli import main

if __name__ == "__main__":
    main()

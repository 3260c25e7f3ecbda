"""Matrix YAML in, measured cells in the store out: planning, executing and the command line."""

from importlib.metadata import version

__version__ = version("benchmatrix")

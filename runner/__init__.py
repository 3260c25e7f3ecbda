"""The runner: it plans the runs of a matrix, measures them on this machine or a cluster, and has the command line."""

from importlib.metadata import version

__version__ = version("benchmatrix")

"""The runner: it plans the runs of a matrix, measures them on this machine or a cluster, and has the command line."""

from bench import __version__

__all__ = ["__version__"]

"""Read, compare and audit measurements in Python, as the command line does.

    import benchmatrix

    benchmatrix.list_runs("file://results")
    cells = benchmatrix.load_cells("study-h200-2", "file://docs/results/2026-11-21-h200")

Tables are pandas data frames in base units (seconds, bytes, joules); docs/tables.md describes their columns. What only
begins with an underscore, and the packages `runner`, `collector` and `bench`, may change with any release.
"""

from bench import __version__
from bench.errors import UserError
from benchmatrix.measurements import audit, compare, list_runs, load_cells, load_repeats, load_steps

__all__ = ["UserError", "__version__", "audit", "compare", "list_runs", "load_cells", "load_repeats", "load_steps"]

"""Plan a run of a matrix on this machine."""

from bench.schema import Run
from runner.capabilities import GpuKind
from runner.local.hardware import explain_unsupported
from runner.local.sharing import explain_unshared
from runner.matrix.expansion import Matrix
from runner.matrix.plan import plan_run


def plan_local_run(matrix: Matrix, *, gpu: GpuKind | None, run_id: str | None) -> Run:
    """Return a new run of the matrix's cells that this machine with its GPUs can run, the others with the reason.

    UserError if none is left.
    """
    return plan_run(matrix, lambda cell: explain_unsupported(cell, gpu) or explain_unshared(cell), run_id=run_id)

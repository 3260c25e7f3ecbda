"""Plan a run of a matrix: which cells are measured, which are left out and why, and the order of the repeats."""

import getpass
import hashlib
import os
import secrets
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bench.errors import UserError
from bench.schema import Cell, Cluster, LeftOutCell, PlannedCell, Precision, Run, bound_time
from runner import __version__
from runner.matrix.expansion import Matrix
from runner.sources import read_git_revision

RepeatKey = tuple[str, int]
"""Id of a cell and number of its repeat."""
TIME_FORMAT = "%Y%m%d-%H%M%S"
"""The format of the time in the id of a run."""
SEED_BITS = 32
"""Length of the seed of a run's order: short enough to be copied by hand, long enough that no two runs share it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeat:
    """One planned repeat of a cell. A run may have 100,000 of them."""

    planned: PlannedCell
    number: int
    key: RepeatKey = field(init=False, compare=False, repr=False)
    """Identifies it among the repeats of a run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.planned.cell.cell_id, self.number))


def plan_run(
    matrix: Matrix, explain: Callable[[Cell], str | None], *, run_id: str | None, cluster: Cluster | None = None
) -> Run:
    """Return a new run of the cells that can run, the others with the reason that `explain` gives.

    `cluster`: None for a run on this machine. UserError if no cell is left.
    """
    reasons = [explain(planned.cell) for planned in matrix.cells]
    if None not in reasons:
        all_reasons = "; ".join(dict.fromkeys(filter(None, reasons)))
        where = "here" if cluster is None else f"on {cluster.context}"
        raise UserError(
            f"{matrix.source}: no cell can run {where}: {all_reasons}; "
            "add cells to the matrix that can, with `device: cpu` for example"
        )
    explained = list(zip(matrix.cells, reasons, strict=True))
    now = datetime.now(UTC)
    if bound_time(now) != now:
        raise UserError(f"this machine's clock says {now.isoformat()}: set it; runs are ordered by their dates")
    return Run(
        run_id=run_id or f"{shorten_name(matrix.name)}-{now:{TIME_FORMAT}}-{secrets.token_hex(2)}",
        matrix=matrix.name,
        created_at=now,
        executor="local" if cluster is None else "kubernetes",
        cluster=cluster,
        hostname=socket.gethostname(),
        user=read_user_name(),
        tool_version=__version__,
        git_revision=read_git_revision(),
        cells=tuple(planned for planned, reason in explained if reason is None),
        left_out=tuple(
            LeftOutCell(cell=planned.cell, reason=reason) for planned, reason in explained if reason is not None
        ),
        order_seed=secrets.randbits(SEED_BITS),
    )


def order_repeats(cells: Iterable[PlannedCell], seed: int | None) -> list[Repeat]:
    """Return all repeats in rounds, every cell's first, then every cell's second: a drift meets every cell alike.

    Within a round the order is drawn from `seed`, anew for each round: in one fixed order, a cell would always follow
    the same one, whose heat and caches it would always meet. None: the order of `cells`, as in runs planned before.
    """
    cells = tuple(cells)
    most = max(planned.repeats for planned in cells)
    rounds = (
        [Repeat(planned=planned, number=number) for planned in cells if number <= planned.repeats]
        for number in range(1, most + 1)
    )
    return [
        repeat
        for repeats in rounds
        for repeat in (repeats if seed is None else sorted(repeats, key=lambda repeat: _draw_place(repeat, seed)))
    ]


def _draw_place(repeat: Repeat, seed: int) -> bytes:
    """Return where a repeat stands in its round, as bytes to sort by.

    A hash, and no random generator: the order is the same in every version of Python, and that of some of the cells is
    that of all of them with gaps.
    """
    cell_id, number = repeat.key
    return hashlib.sha256(f"{seed} {number} {cell_id}".encode()).digest()


def shorten_name(matrix_name: str) -> str:
    """Return the part of a run's id that comes from the matrix: with time and number behind it, it fits into a Name."""
    return matrix_name[:40].rstrip("-")


def read_user_name() -> str:
    """Return the name of who runs this process, or the number of one without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many containers
        return str(os.getuid())


ComputeCapability = tuple[int, int]

# CUDA C++ Programming Guide, table "Feature Support per Compute Capability": TF32 and bfloat16 came with Ampere,
# arithmetic on half-precision values with 5.3.
MIN_CAPABILITY: dict[Precision, ComputeCapability] = {"tf32": (8, 0), "bf16": (8, 0), "fp16": (5, 3)}
# Triton, which torch.compile makes its GPU kernels with, knows no older ones (torch._inductor.exc.GPUTooOldForTriton).
MIN_TRITON_CAPABILITY: ComputeCapability = (7, 0)

NO_GPU = "no NVIDIA GPU is visible on this machine"
NO_CPU_PRECISION: dict[Precision, str] = {
    "tf32": "tf32 is a mode of NVIDIA GPUs, a CPU has none; leave it to cells with device gpu",
    "fp16": "fp16 is for GPUs: hardly any CPU computes in it; take bf16 or fp32 on a CPU",
}


@dataclass(frozen=True, kw_only=True)
class GpuKind:
    """The GPUs that a machine has for a cell, all of one kind."""

    name: str
    """NVML's name of it, such as `Tesla T4`."""
    compute_capability: ComputeCapability
    """(7, 5) for a T4."""
    num_gpus: int


def explain_incapable(cell: Cell, gpu: GpuKind | None) -> str | None:
    """Return why a machine with these GPUs (None: without any) cannot run `cell`, in one line; None where it can.

    Does not check whether the cell fits into memory.
    """
    if cell.device == "cpu":
        return NO_CPU_PRECISION.get(cell.precision)
    if gpu is None:
        return NO_GPU
    if gpu.num_gpus < cell.num_gpus:
        return f"num_gpus is {cell.num_gpus}, and {gpu.num_gpus} {gpu.name} can be used together on this machine"
    needed = MIN_CAPABILITY.get(cell.precision)
    if needed is not None and gpu.compute_capability < needed:
        return _explain_too_old(cell.precision, needed, gpu)
    if (cell.framework, cell.mode) == ("pytorch", "compiled") and gpu.compute_capability < MIN_TRITON_CAPABILITY:
        return _explain_too_old("compiled PyTorch", MIN_TRITON_CAPABILITY, gpu)
    return None


def _explain_too_old(what: str, needed: ComputeCapability, gpu: GpuKind) -> str:
    major, minor = gpu.compute_capability
    return f"{what} needs a GPU of compute capability {needed[0]}.{needed[1]} or higher; {gpu.name} has {major}.{minor}"

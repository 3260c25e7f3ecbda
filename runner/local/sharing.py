"""Say by what the GPU of this machine can be shared, and share it among the tenants of one repeat."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.schema import Cell
from runner.local.hardware import find_first_uuid, is_exclusive, list_slice_uuids
from runner.local.mps import explain_missing_mps, run_mps
from runner.local.process import ProcessNotStarted


def explain_unshared(cell: Cell) -> str | None:
    """Return why the GPU of this machine cannot be shared as the cell asks for, in one line; None if it can."""
    if cell.device == "cpu":
        return None
    if cell.sharing == "mps":
        return explain_missing_mps()
    if cell.sharing == "mig":
        num_slices = len(list_slice_uuids())
        if num_slices >= cell.tenants:
            return None
        return (
            f"sharing 'mig' needs a slice for each of {cell.tenants} tenants, and the GPU has {num_slices} here; "
            "`nvidia-smi mig` makes slices"
        )
    if cell.tenants > 1 and is_exclusive():
        return (
            "sharing 'time-slicing' needs a GPU that several processes may use, and its compute mode allows one; "
            "`nvidia-smi -c DEFAULT` lets them in"
        )
    return None


@contextmanager
def share_device(cell: Cell, *, keep_open: Sequence[int] = ()) -> Iterator[list[dict[str, str]]]:
    """Share the device of a cell among its tenants in the body; yield the variables that each of them needs.

    Raise ProcessNotStarted where the sharing cannot be set up. A process that it takes inherits `keep_open`.
    """
    if cell.sharing == "mig":
        uuids = list_slice_uuids()
        if len(uuids) < cell.tenants:
            raise ProcessNotStarted(f"the GPU has {len(uuids)} MIG slices now, and the cell {cell.tenants} tenants")
        yield [{"CUDA_VISIBLE_DEVICES": uuid} for uuid in uuids[: cell.tenants]]
        return
    if cell.sharing == "time-slicing":
        yield [{} for _ in range(cell.tenants)]
        return
    with run_mps(find_first_uuid(), keep_open=keep_open) as variables:
        yield [variables] * cell.tenants

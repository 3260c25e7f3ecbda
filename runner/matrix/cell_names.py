"""Say for people what a cell is, in one line, without what only its id tells."""

from bench.registry import FRAMEWORKS
from bench.schema import Cell


def describe_cell(cell: Cell) -> str:
    """Return `conv6 train, GPU, batch 64, size 224, fp32, TensorFlow graph`.

    Several GPUs, tenants and real data are named where a cell has them; of how long is measured nothing is said.
    """
    device = cell.device.upper() if cell.num_gpus == 1 else f"{cell.num_gpus} {cell.device.upper()}s"
    parts = [
        *(f"{cell.model} {cell.phase}", device, f"batch {cell.batch_size}", f"size {cell.input_size}", cell.precision),
        f"{FRAMEWORKS[cell.framework].label} {cell.mode}",
    ]
    if cell.is_shared:
        tenants = f"{cell.tenants} tenant{'' if cell.tenants == 1 else 's'}"
        parts.append(tenants if cell.device == "cpu" else f"{tenants} by {cell.sharing}")
    if cell.neighbour is not None:
        parts.append("beside others")
    if cell.data_dir is not None:
        parts.append(f"data of {cell.data_dir}")
    return ", ".join(parts)

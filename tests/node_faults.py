"""Makes the documents that say which node could not measure an attempt."""

from typing import Any

from bench.schema import NodeFault, Run
from factories import START


def make_node_fault(run: Run, **overrides: Any) -> NodeFault:
    """Return a fault of a node that ended an attempt at the first repeat of the run's first cell."""
    cell = run.cells[0].cell
    fields: dict[str, Any] = {
        "run_id": run.run_id,
        "cell_id": cell.cell_id,
        "repeat": 1,
        "attempt": "a1",
        "retry_round": 0,
        "pool": cell.device,
        "node_name": "node-1",
        "reason": "fault of this machine: device: GPU is lost",
        "at": START,
    }
    return NodeFault(**(fields | overrides))

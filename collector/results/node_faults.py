"""Read which nodes of a cluster could not measure attempts of a run."""

from bench.schema import InvalidDocumentError, NodeFault, Run, read_node_fault
from bench.store import Store, node_faults_prefix, parse_node_fault_key
from collector.results.collection import SkippedDocument


def read_node_faults(store: Store, run: Run) -> tuple[tuple[NodeFault, ...], list[SkippedDocument]]:
    """Return the node faults of a run, the oldest first, and those that cannot be read. A local run has none."""
    if run.executor != "kubernetes":
        return (), []
    found: list[NodeFault] = []
    skipped = []
    for key, data in store.get_many(store.list_keys(node_faults_prefix(run.run_id))):
        parts = parse_node_fault_key(key)
        try:
            fault = read_node_fault(data)
        except InvalidDocumentError as error:
            skipped.append(SkippedDocument(key=key, reason=str(error)))
            continue
        held = (fault.run_id, fault.cell_id, fault.repeat, fault.attempt)
        if parts is None or held != (run.run_id, parts.cell_id, parts.repeat, parts.attempt):
            skipped.append(SkippedDocument(key=key, reason="the node fault is of another attempt than its key says"))
        else:
            found.append(fault)
    return tuple(sorted(found, key=lambda fault: fault.at)), skipped

"""Read which nodes of a cluster could not measure attempts of a run."""

from bench.schema import NodeFault, Run, read_node_fault
from bench.store import Store, node_faults_prefix, parse_node_fault_key
from collector.results.attempt_documents import read_attempt_documents
from collector.results.collection import SkippedDocument


def read_node_faults(store: Store, run: Run) -> tuple[tuple[NodeFault, ...], list[SkippedDocument]]:
    """Return the node faults of a run, the oldest first, and those that cannot be read. A local run has none."""
    if run.executor != "kubernetes":
        return (), []
    found, skipped = read_attempt_documents(
        store, node_faults_prefix(run.run_id), parse_node_fault_key, read_node_fault, "node fault"
    )
    return tuple(sorted(found, key=lambda fault: fault.at)), skipped

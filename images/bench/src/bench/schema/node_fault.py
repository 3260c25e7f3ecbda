"""NodeFault: an attempt on a cluster that its node ended before anything was measured."""

from typing import Literal

from bench.schema.document import SCHEMA_VERSION, CellId, Count, Name, Number, StoredDocument, Time, Version


class NodeFault(StoredDocument):
    """One attempt that a node could not measure for a reason of its own; the repeat is measured again."""

    schema_version: Version = SCHEMA_VERSION
    run_id: Name
    cell_id: CellId
    repeat: Count
    attempt: Name
    """The pod's uid; where the pod is gone, the Job's."""
    retry_round: Number
    """How many terminal records the repeat had then: 0, or more if it was measured again."""
    pool: Literal["cpu", "gpu"]
    node_name: str | None = None
    """null: the pod was gone before a runner saw it."""
    hostname: str | None = None
    """The node's label `kubernetes.io/hostname`, by which later Jobs keep off it. null: it could not be read."""
    reason: str
    """What the container or the kubelet said, in one line."""
    at: Time
    """When the attempt ended."""
    num_in_a_row: Count = 1
    """How many attempts on this node had ended so since the last that ended ok, as far as the runner knew."""
    is_left_out: bool = False
    """Later Jobs of the run keep off the node."""

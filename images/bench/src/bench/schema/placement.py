"""Placement: where in a cluster an attempt ran, as its runner learned it from the pod and the node."""

from typing import Literal

from bench.schema.document import (
    SCHEMA_VERSION,
    CellId,
    Count,
    Document,
    Name,
    Number,
    PositiveAmount,
    StoredDocument,
    Time,
    Version,
)


class Node(Document):
    """What a node of a cluster says of itself. A field that it has no label for is null: unknown."""

    instance_type: str | None = None
    """The cloud's machine type, such as `n1-standard-4`: the label `node.kubernetes.io/instance-type`."""
    region: str | None = None
    """`topology.kubernetes.io/region`."""
    zone: str | None = None
    """`topology.kubernetes.io/zone`."""
    is_spot: bool | None = None
    """The cloud may take the machine back at any time and sells it cheaper for that. null: no label says."""
    capacity_label: str | None = None
    """The label that `is_spot` was read from, as `KEY=VALUE`; null where a missing label says it."""
    kubelet_version: str | None = None
    container_runtime: str | None = None
    """Such as `containerd://2.1.4`."""
    os_image: str | None = None
    num_cpus: Count | None = None
    """Cores of the node, hyperthreads counted."""
    gpu_labels: dict[str, str] = {}
    """What labels say of its GPUs: `nvidia.com/gpu.product`, `cloud.google.com/gke-accelerator` and the like."""


class Placement(StoredDocument):
    """Where in a cluster one attempt at one repeat ran. Locally there is none."""

    schema_version: Version = SCHEMA_VERSION
    run_id: Name
    cell_id: CellId
    repeat: Count
    attempt: Name
    """The pod's uid, as in the Result of the attempt."""
    pod: str
    node_name: str
    image_id: str | None = None
    """The image that ran, by digest: `imageID` of the container's status. null: the runtime named none."""
    qos_class: str | None = None
    """`Guaranteed`, `Burstable` or `BestEffort`."""
    cpu_request_cores: PositiveAmount | None = None
    """Cores that the container requested."""
    other_containers: tuple[str, ...] = ()
    """The names of containers that ran in the pod beside those that measured, such as a proxy that a policy added."""
    node: Node | None = None
    """null: the runner may not read nodes, or the node was gone."""


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

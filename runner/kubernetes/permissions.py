"""What the runner asks the API server for: the one list that its Roles are rendered from and `doctor` asks about."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Permission:
    """Verbs on one resource, in the namespace of the run unless it has none."""

    group: str
    """API group; empty: the core's."""
    resource: str
    verbs: tuple[str, ...]
    purpose: str
    """What the runner does with them."""


RUN_PERMISSIONS = (
    Permission(
        group="batch",
        resource="jobs",
        verbs=("create", "list", "watch", "delete"),
        purpose="submit the cells, follow them, give up those that cannot start",
    ),
    Permission(group="", resource="pods", verbs=("list", "watch"), purpose="explain why a cell waits or how it died"),
    Permission(
        group="",
        resource="pods/log",
        verbs=("get",),
        purpose="take the record of a cell that could not reach the store",
    ),
    Permission(group="", resource="events", verbs=("list",), purpose="explain why a Job has no pod"),
)
"""What a run needs, and nothing else: the permissions of the chart's scheduled runs."""
CLEANUP_PERMISSIONS = (
    Permission(
        group="batch",
        resource="jobs",
        verbs=("patch", "deletecollection"),
        purpose="cancel and clean a run",
    ),
)
"""What `benchmatrix cancel` and `clean` need on top of the permissions of a run."""
NODE_PERMISSION = Permission(
    group="",
    resource="nodes",
    verbs=("get",),
    purpose="record the machine type, zone and kubelet of every result, and whether the machine is spot",
)
"""What a run asks for once a node and can do without. Nodes are in no namespace, so that no Role can allow it."""
QUEUE_PERMISSIONS = (
    Permission(
        group="kueue.x-k8s.io",
        resource="workloads",
        verbs=("list",),
        purpose="say why Kueue has not started a Job",
    ),
    Permission(
        group="kueue.x-k8s.io",
        resource="localqueues",
        verbs=("get",),
        purpose="say in `status` and `doctor` whether a queue is there and active",
    ),
)
"""What a run with a queue asks for and can do without. `doctor` reads ClusterQueues and ResourceFlavors besides, which
are in no namespace, so that no Role can allow it."""

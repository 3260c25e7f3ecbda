"""List what the runner asks the API server for: the list that its Roles are rendered from and `doctor` asks about."""

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
        verbs=("create", "list", "watch", "delete", "deletecollection"),
        purpose="submit the cells, follow them, delete those that cannot start or are recorded",
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
"""What a run needs, and nothing else."""
CLEANUP_PERMISSIONS = (
    Permission(
        group="batch",
        resource="jobs",
        verbs=("patch",),
        purpose="cancel and clean a run",
    ),
    Permission(group="", resource="pods", verbs=("delete",), purpose="delete pods whose Job is gone"),
)
"""What `benchmatrix cancel` and `clean` need on top of the permissions of a run."""
CANCEL_PERMISSIONS = (
    Permission(group="batch", resource="jobs", verbs=("list", "patch", "delete"), purpose="mark and delete the Jobs"),
)
"""All that `cancel` needs."""
NODE_PERMISSION = Permission(
    group="",
    resource="nodes",
    verbs=("get", "list"),
    purpose="record the machine type, zone and kubelet of every result, and count the cells that fit on the nodes",
)
"""What a run can do without: it asks for each node once, and lists the nodes every two minutes.

Nodes are in no namespace, so that no Role can allow it."""
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

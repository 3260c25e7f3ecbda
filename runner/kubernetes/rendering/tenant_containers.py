"""Gives a Job's pod a container for each tenant of its cell, of which the first, `bench`, leads the others.

One pod, so that the group is placed, preempted, evicted and measured again as a whole: see
docs/decisions/0037-tenants-on-a-cluster.md.
"""

import copy
from collections.abc import MutableMapping
from typing import Any

LEADER = "bench"
OWN_VOLUMES = ("tmp", "shm")
"""Volumes that each tenant has to itself, as if it were alone."""


def name_tenant(number: int) -> str:
    """Return the name of a tenant's container."""
    return LEADER if number == 0 else f"tenant-{number}"


def add_tenants(job: MutableMapping[str, Any], num_tenants: int) -> None:
    """Change a Job of one container such that its pod has `num_tenants`, each told which one it is.

    They differ in that, in their names and in their OWN_VOLUMES. How any of them ended decides what the Job does next:
    https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
    """
    pod = job["spec"]["template"]["spec"]
    # Else every tenant would be process 1 to itself, and none could be told from another by what NVML says of them:
    # https://kubernetes.io/docs/tasks/configure-pod-container/share-process-namespace/
    pod["shareProcessNamespace"] = True
    leader = next(container for container in pod["containers"] if container["name"] == LEADER)
    pod["containers"] = [_make_tenant(leader, number) for number in range(num_tenants)]
    own = [volume for volume in pod["volumes"] if volume["name"] in OWN_VOLUMES]
    pod["volumes"] += [
        copy.deepcopy(volume) | {"name": _name_volume(volume["name"], number)}
        for number in range(1, num_tenants)
        for volume in own
    ]
    for rule in job["spec"]["podFailurePolicy"]["rules"]:
        rule.get("onExitCodes", {}).pop("containerName", None)


def _make_tenant(leader: MutableMapping[str, Any], number: int) -> dict[str, Any]:
    tenant = copy.deepcopy(dict(leader))
    tenant["name"] = name_tenant(number)
    tenant["env"] += [
        {"name": "BENCH_TENANT", "value": str(number)},
        {"name": "BENCH_TENANT_GROUP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
    ]
    for mount in tenant["volumeMounts"]:
        mount["name"] = _name_volume(mount["name"], number)
    return tenant


def _name_volume(name: str, number: int) -> str:
    return f"{name}-{number}" if number and name in OWN_VOLUMES else name

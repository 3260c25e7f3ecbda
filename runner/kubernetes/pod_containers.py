"""Tells the containers of a pod that measure from those that a cluster's policies, or a profile's overlay, added."""

import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

OWN_CONTAINER = r"bench|tenant-[0-9]+"
"""The names of the containers that measure, as rendering.tenant_containers gives them."""


def list_others(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the containers of a pod that run beside those that measure.

    Among the init containers these are the ones that Kubernetes restarts: its sidecars
    (https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/). Others have ended by then.
    """
    beside = [found for found in spec.get("initContainers", ()) if found.get("restartPolicy") == "Always"]
    added = [found for found in spec.get("containers", ()) if not is_own(found["name"])]
    return tuple(sorted(sys.intern(found["name"]) for found in (*beside, *added)))


def is_measured(statuses: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether all containers that measure have ended, by the statuses of a pod's containers, and others not."""
    states = {found["name"]: "terminated" in found.get("state", {}) for found in statuses}
    own = [has_ended for name, has_ended in states.items() if is_own(name)]
    return bool(own) and all(own) and not all(states.values())


def is_own(name: str) -> bool:
    """Return whether a container of this name measures."""
    return re.fullmatch(OWN_CONTAINER, name) is not None

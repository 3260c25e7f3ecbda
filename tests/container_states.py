"""States of containers, as the kubelet of the tests writes them: how they end or wait, and what others in a pod do."""

import re
from typing import Any

from bench.errors import EXIT_NODE_FAULT, EXIT_PREEMPTED, EXIT_RESULT_IN_LOG, EXIT_TRY_AGAIN
from fake_nodes import format_now

OWN_CONTAINERS = r"bench|tenant-\d+"
"""Those that the tool asks for; a pod with others goes on when they have ended."""
# How a container ends that leaves no record: exit code, reason, the log's tail.
EXITS: dict[str, tuple[int, str, str]] = {
    "no-record": (0, "Completed", ""),
    "oom": (137, "OOMKilled", "out of memory"),
    "user-error": (2, "Error", "Traceback\nerror: BENCH_STORE: not set"),
    "in-log": (EXIT_RESULT_IN_LOG, "Error", "BENCH_RESULT ..."),
    "crash": (139, "Error", "Segmentation fault"),
    "node-fault": (EXIT_NODE_FAULT, "Error", "error: fault of this machine: device: GPU is lost"),
    "busy": (EXIT_TRY_AGAIN, "Error", "error: GPU GPU-1 is in use by others"),
    "over-limit": (EXIT_PREEMPTED, "Error", "preempted: ended by SIGTERM"),
}
WAITING: dict[str, tuple[str, str]] = {
    "image": ("ImagePullBackOff", 'Back-off pulling image "x": not found'),
    "secret": ("CreateContainerConfigError", 'secret "benchmatrix-store" not found'),
    "stuck": ("ContainerCreating", ""),
    "no-device": (
        "CreateContainerError",
        'failed to generate container "5d" spec: failed to apply OCI options: CDI device injection failed: '
        "unresolvable CDI devices nvidia.com/gpu=GPU-1",
    ),
}


def list_added(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the containers of a pod that the tool did not ask for."""
    return [found for found in pod["spec"]["containers"] if not re.fullmatch(OWN_CONTAINERS, found["name"])]


def describe_added(container: dict[str, Any], state: dict[str, Any], *, is_running: bool) -> dict[str, Any]:
    """Return the status of such a container. `state`: that of the container that measures; `is_running`: the pod's."""
    own = {"running": {"startedAt": format_now()}} if is_running and "waiting" not in state else state
    known = {"name": container["name"], "image": container["image"], "imageID": "", "ready": True, "restartCount": 0}
    return known | {"state": own}

"""Compute what a pod requests of the node that it runs on, and of the queue that it waits in."""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from runner.kubernetes.node_labels import read_quantity


def sum_requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return what the containers of a pod request together."""
    total: defaultdict[str, Decimal] = defaultdict(Decimal)
    for container in spec["containers"]:
        for name, amount in container.get("resources", {}).get("requests", {}).items():
            total[name] += read_quantity(amount)
    return dict(total)

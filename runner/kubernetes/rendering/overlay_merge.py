"""Merge a profile's overlay into a rendered Job, as `kubectl patch` merges: lists by the names of their items.

https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/
"""

from collections.abc import Mapping
from typing import Any

from bench.errors import UserError

MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "env": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "resourceClaims": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""By the list's key: what tells its items apart, `x-kubernetes-patch-merge-key` in the schema of Kubernetes. Items of
other lists, tolerations among them, are appended."""
REPLACEABLE = frozenset(
    {
        "spec.containers.imagePullPolicy",
        # Groups are the cluster's business: a volume may belong to another group than that of the images.
        "spec.securityContext.fsGroup",
        # `RuntimeDefault` or `Localhost` with a profile of the node: both are allowed by `restricted`.
        "spec.securityContext.seccompProfile.type",
    }
)
"""Values of the tool that an overlay may replace."""


def merge_overlay(job: Mapping[str, Any], overlay: Mapping[str, Any], *, source: str) -> dict[str, Any]:
    """Return a Job whose pods have the overlay too.

    UserError if the overlay gives a value that the tool sets to another one. `source` begins the message.
    """
    template = _merge(job["spec"]["template"], overlay, (), source)
    return {**job, "spec": {**job["spec"], "template": template}}


def _merge(base: Any, added: Any, path: tuple[str, ...], source: str) -> Any:
    if isinstance(base, dict) and isinstance(added, dict):
        merged = {
            key: _merge(base[key], value, (*path, key), source) if key in base else value
            for key, value in added.items()
        }
        return {**base, **merged}
    if isinstance(base, list) and isinstance(added, list):
        return _merge_lists(base, added, path, source)
    place = ".".join(path)
    if base != added and place not in REPLACEABLE:
        raise UserError(
            f"{source}: overlay.{place}: is {added!r}, but the tool sets it to {base!r}, which follows from other keys "
            "of the profile or must be so; remove it from the overlay"
        )
    return added


def _merge_lists(base: list[Any], added: list[Any], path: tuple[str, ...], source: str) -> list[Any]:
    name = MERGE_KEYS.get(path[-1])
    if name is None:
        return [*base, *(item for item in added if item not in base)]
    merged = {item[name]: item for item in base}
    for item in added:
        known = merged.get(item[name])
        merged[item[name]] = item if known is None else _merge(known, item, path, source)
    return list(merged.values())

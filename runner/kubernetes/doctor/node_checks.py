"""Checks of the nodes: which can hold the cells, and whether they have the images."""

from collections.abc import Iterator, Sequence

from runner.images.names import LOCAL_REGISTRY
from runner.kubernetes.doctor.cluster_inventory import ClusterInventory
from runner.kubernetes.doctor.context import CellKind, DoctorContext
from runner.kubernetes.doctor.findings import Finding, FindingState
from runner.kubernetes.doctor.node_fit import NodeStatus, fit_pod


def check_nodes(context: DoctorContext, inventory: ClusterInventory) -> Iterator[Finding]:
    """Find, for each kind of cell, the nodes that can hold it, or why none can."""
    for kind in {kind.place: kind for kind in context.kinds}.values():
        fit = fit_pod(kind.pod_spec, inventory.nodes)
        check, total = f"nodes for cells on {kind.place}", len(inventory.nodes)
        message = f"{len(fit.fitting) or 'none'} of {total} nodes can hold one"
        if fit.fitting:
            yield Finding(check=check, state="ok", message=message, details=fit.describe())
        elif inventory.autoscaler:
            hint = f"{inventory.autoscaler} may add one that can; see that one of its pools has what is missing"
            yield Finding(check=check, state="warning", message=message, hint=hint, details=fit.describe())
        else:
            hint = "add such a node, or change the pool of the profile: its labels, tolerations, cpus or memory"
            yield Finding(check=check, state="failed", message=message, hint=hint, details=fit.describe())


def check_images(context: DoctorContext, inventory: ClusterInventory) -> Iterator[Finding]:
    """Find which image each kind of cell is run from, and whether nodes have it already. No registry is asked."""
    named = [kind for kind in context.kinds if kind.has_image]
    for kind in {(kind.cell.framework, kind.cell.device): kind for kind in named}.values():
        nodes = fit_pod(kind.pod_spec, inventory.nodes).fitting
        is_named = kind.cell.device in context.profile.images.get(kind.cell.framework, {})
        yield describe_image_finding(kind, context.profile.find_image(kind.cell), nodes, is_named=is_named)


def describe_image_finding(kind: CellKind, image: str, nodes: Sequence[NodeStatus], *, is_named: bool) -> Finding:
    """Return the finding about the image of this kind of cells. `nodes`: those that could run them.

    `is_named`: the profile's `images` gives its full name; otherwise its tag comes from the checkout, and it may not
    have been built.
    """
    check = f"image: {kind.cell.framework} for {kind.cell.device}"
    having = [node for node in nodes if image in node.images or f"docker.io/{image}" in node.images]
    if having:
        return Finding(check=check, state="ok", message=f"{image} is on {len(having)} of {len(nodes)} nodes")
    message = f"{image} is on none of the nodes that could run it, as far as they report"
    if is_named:
        return Finding(check=check, state="ok", message=f"{message}: they pull it")
    state: FindingState = "warning"
    if image.startswith(f"{LOCAL_REGISTRY}/"):  # of no registry: nothing pulls it
        hint = "bring it to them (`kind load docker-image`)"
        if nodes and all(node.names_all_images for node in nodes):
            state, message = "failed", f"{image} is on none of the nodes that could run it: cells would wait for it"
    else:
        hint = f"see that the registry has it: docker manifest inspect {image}"
    hint += "; if it was built with --base or --cpu-index, write image_base or image_cpu_index in the profile"
    return Finding(check=check, state=state, message=message, hint=hint)

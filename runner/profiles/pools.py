"""Define the nodes of a profile, what a cell takes of one, their GPUs, and how containers share a GPU."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bench.schema import Cell, Sharing
from bench.schema.document import Count, Document
from runner.kubernetes.names import DnsLabel, LabelKey, LabelValue, ObjectName, Quantity, Resource

# https://kubernetes.io/docs/reference/labels-annotations-taints/: every kubelet sets both.
OWN_NODE_LABELS = {
    "kubernetes.io/arch": "`architecture` of the profile says which",
    "kubernetes.io/os": "the images are for Linux",
}
"""Labels that the tool selects nodes by, and what to do instead."""
NO_DISRUPTION = {
    # https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    # https://karpenter.sh/docs/concepts/disruption/#pod-level-controls, EKS Auto Mode is built on it:
    # https://docs.aws.amazon.com/eks/latest/userguide/automode.html
    "karpenter.sh/do-not-disrupt": "true",
}
"""Annotations that ask the autoscalers not to evict a pod."""


class NodeRequirement(Document):
    """One condition on a node's labels."""

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[LabelValue, ...] = ()
    """For `In` and `NotIn`."""

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        needs_values = self.operator in ("In", "NotIn")
        if needs_values and not self.values:
            raise ValueError(f"values: is missing or empty; `{self.operator}` needs a list of at least one")
        if self.values and not needs_values:
            raise ValueError(f"values: `{self.operator}` takes none; remove them, or write `In` or `NotIn`")
        return self


class Toleration(Document):
    """A taint that cells may run in spite of."""

    key: LabelKey
    operator: Literal["Exists", "Equal"]
    value: LabelValue | None = None
    """For `Equal`; null: an empty one."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """null: all of them."""

    @model_validator(mode="after")
    def _check_value(self) -> Self:
        if self.operator == "Exists" and self.value is not None:
            raise ValueError("value: `Exists` takes none; remove it, or write `operator: Equal`")
        return self


class Pool(Document):
    """The nodes for cells of one device, and what a cell takes of such a node."""

    node_selector: dict[LabelKey, LabelValue] = {}
    """Labels that a node must have."""
    node_affinity: tuple[Annotated[tuple[NodeRequirement, ...], Field(min_length=1)], ...] = ()
    """Lists of requirements on a node's labels; a node must meet all of one list."""
    node_requirements: tuple[NodeRequirement, ...] = ()
    """What a node must meet besides, whichever of these lists it meets."""
    tolerations: tuple[Toleration, ...] = ()
    cpus: Count
    """Whole cores of a cell, requested and limited: QoS Guaranteed."""
    memory: Quantity
    has_exclusive_cores: bool = False
    """The kubelets have the static CPU manager with `full-pcpus-only`: `cpus` must be even."""
    runtime_class_name: ObjectName | None = None
    """`nvidia` on k3s and RKE2. null: the cluster's default."""
    is_alone_on_node: bool = True
    """No other cell runs on the node of a cell, of whatever run and namespace."""
    max_parallel: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Jobs of the pool that are unfinished at once. null: twice the cells that fit on its nodes."""
    price_per_hour: Annotated[float, Field(ge=0, le=1e12)] | None = None
    """What a node costs, in `currency`. null: unknown."""

    @model_validator(mode="after")
    def _check_cpus(self) -> Self:
        if self.has_exclusive_cores and self.cpus % 2:
            raise ValueError(
                f"cpus: {self.cpus} is odd; a kubelet with full-pcpus-only gives whole physical cores, which have two "
                "CPUs each, and refuses the pod (SMTAlignmentError): take an even number"
            )
        return self

    @model_validator(mode="after")
    def _check_selector(self) -> Self:
        for key, other in OWN_NODE_LABELS.items():
            if key in self.node_selector:
                raise ValueError(f"node_selector: {key} is set by the tool; {other}")
        return self

    @property
    def node_selector_terms(self) -> tuple[tuple[NodeRequirement, ...], ...]:
        """The alternatives of the pods' node affinity, each with all that a node must meet."""
        terms = self.node_affinity or ((),)
        return tuple(term + self.node_requirements for term in terms if term + self.node_requirements)


PRODUCT_LABEL, SHARED_SUFFIX = "nvidia.com/gpu.product", "-SHARED"
"""GPU feature discovery appends this to the name of a GPU that is shared under its own resource's name; with
`renameByDefault` it does not. getProductName in internal/lm/resource.go of https://github.com/NVIDIA/k8s-device-plugin"""


class GpuSharing(Document):
    """Nodes whose GPUs are shared in one way, and what a tenant takes of such a node."""

    clients: tuple[Annotated[int, Field(ge=1, le=64)], ...] = ()
    """How many containers may use one GPU there at once; several numbers: there are nodes of each. Empty: there is no
    such node."""
    clients_label: LabelKey | None = None
    """The label of the nodes that says this number. null: they have none."""
    node_requirements: tuple[NodeRequirement, ...] = ()
    """What such a node must meet, in the place of what the pool asks of the same labels."""
    resource: Resource | None = None
    """What the device plugin calls a share; null: as `gpu.resource`."""
    host_ipc: bool = False
    """The pods need the IPC namespace of their node, which the Pod Security Standards refuse but for `privileged`."""
    cpus: Count | None = None
    """Whole cores of one tenant; null: as many as a cell that is alone."""
    memory: Quantity | None = None
    """Memory of one tenant; null: as much as of a cell that is alone."""

    @model_validator(mode="after")
    def _check_label(self) -> Self:
        if len(set(self.clients)) > 1 and self.clients_label is None:
            raise ValueError("clients_label: is missing; it tells nodes with one number of `clients` from the others")
        return self


class Gpus(Document):
    """The GPUs of the pool `gpu`, and how a cell asks for them."""

    name: str
    """NVML's name of the GPU."""
    compute_capability: tuple[Annotated[int, Field(ge=1, le=99)], Annotated[int, Field(ge=0, le=99)]]
    """Major and minor number, as a list."""
    max_per_node: Annotated[int, Field(ge=1, le=64)]
    """GPUs of the largest node."""
    request: Literal["limit", "claim"] = "limit"
    """`limit`: the device plugin's resource. `claim`: a ResourceClaim (dynamic resource allocation)."""
    resource: Resource = "nvidia.com/gpu"
    """What the device plugin calls a GPU; `nvidia.com/gpu.shared` for a share of one."""
    sharing: dict[Sharing, GpuSharing] = {}
    """By the way of sharing: the nodes for cells with several tenants."""
    device_class: ObjectName = "gpu.nvidia.com"
    """The DeviceClass that a claim asks for."""
    claim_prefix: DnsLabel = "benchmatrix"
    """What the names of the ResourceClaimTemplates begin with."""

    def name_claim_template(self, num_gpus: int) -> str:
        return f"{self.claim_prefix}-{num_gpus}-gpu"

    def find_sharing(self, cell: Cell) -> GpuSharing | None:
        """Return how the nodes for a GPU cell share their GPUs; None: it takes whole ones, for itself or its tenants.

        The containers of a pod can use one claimed GPU together, so a claim needs no node that shares:
        https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
        """
        if not is_shared(cell) or self.request == "claim":
            return None
        return self.sharing.get(cell.sharing, GpuSharing())

    def explain_unshared(self, cell: Cell, profile: str) -> str | None:
        """Return why no node shares its GPUs as the cell asks for; None if one does, or it does not ask."""
        if self.request == "claim" and is_shared(cell) and cell.sharing != "time-slicing":
            return f"sharing: {cell.sharing}: the tenants of a claimed GPU (gpu.request: claim) take turns, no more"
        found = self.find_sharing(cell)
        if found is None or list_clients(cell, found):
            return None
        place = f"gpu.sharing.{cell.sharing}.clients of the profile {profile}"
        if not found.clients:
            return f"sharing: {cell.sharing}: {place} names no nodes that share GPUs so"
        numbers = ", ".join(map(str, sorted(found.clients)))
        if cell.sharing == "mps":
            return (
                f"tenants: {cell.tenants}: {place} has {numbers}; with MPS a node gives each container an equal part "
                "of its GPU, so their number must be that of the tenants"
            )
        return f"tenants: {cell.tenants}: {place} has at most {max(found.clients)}"


def is_shared(cell: Cell) -> bool:
    """Return whether a cell's GPU is to be shared: among tenants, or in a way that even one tenant must ask for."""
    return cell.device == "gpu" and cell.is_shared


def list_clients(cell: Cell, sharing: GpuSharing) -> tuple[int, ...]:
    """Return the numbers of clients with which a node can serve the cell, ascending.

    With MPS, device plugins limit each client to an equal part of the GPU's memory and of its processors, whether the
    others are there or not: NVIDIA's (perDevicePinnedDeviceMemoryLimits and activeThreadPercentage in
    cmd/mps-control-daemon/mps/daemon.go, https://github.com/NVIDIA/k8s-device-plugin) and GKE's (Envs in
    pkg/gpu/nvidia/manager.go, https://github.com/GoogleCloudPlatform/container-engine-accelerators). A part of the
    GPU that belongs to no tenant would be in no figure, so exactly as many clients as tenants are asked for.
    """
    if cell.sharing == "mps":
        return tuple(sorted({number for number in sharing.clients if number == cell.tenants}))
    return tuple(sorted({number for number in sharing.clients if number >= cell.tenants}))


def share_pool(pool: Pool, sharing: GpuSharing, clients: Sequence[int]) -> Pool:
    """Return a pool whose nodes share their GPUs so among one of these numbers of containers."""
    rules = list(sharing.node_requirements)
    if sharing.clients_label is not None:
        values = tuple(str(number) for number in clients)
        rules.append(NodeRequirement(key=sharing.clients_label, operator="In", values=values))
    keys = {rule.key for rule in rules}
    kept = tuple(rule for rule in pool.node_requirements if rule.key not in keys)
    return pool.model_copy(
        update={
            "node_selector": {key: value for key, value in pool.node_selector.items() if key not in keys},
            "node_affinity": tuple(
                tuple(_name_shared(rule) for rule in term if rule.key not in keys) for term in pool.node_affinity
            ),
            "node_requirements": (*kept, *rules),
            "cpus": sharing.cpus or pool.cpus,
            "memory": sharing.memory or pool.memory,
        }
    )


def _name_shared(rule: NodeRequirement) -> NodeRequirement:
    """Return a requirement that the name of a GPU meets also where it is shared."""
    if rule.key != PRODUCT_LABEL or rule.operator != "In":
        return rule
    shared = tuple(f"{value}{SHARED_SUFFIX}" for value in rule.values)
    return rule.model_copy(update={"values": (*rule.values, *shared)})

"""Define a profile: nodes, GPUs, resources, images and identity of a cluster. docs/profiles.md lists all keys."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from bench.errors import UserError
from bench.schema import Cell, Device, Framework, Sharing
from bench.schema.document import Count, Document
from runner.images import find_image, make_arguments, name_image
from runner.kubernetes.names import (
    CONTAINER,
    OWN_LABELS,
    DnsLabel,
    ImageReference,
    LabelKey,
    LabelValue,
    MountPath,
    ObjectName,
    Quantity,
    Resource,
    VariableName,
    check_dns_label,
    check_option,
    explain_secret_variable,
)
from runner.matrix import GpuKind, explain_incapable
from runner.sources import is_image

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


NodePools = Literal["cpu", "gpu"]


class Volume(Document):
    """A PersistentVolumeClaim that the cells mount."""

    claim: ObjectName
    """Name of the PersistentVolumeClaim."""
    mount_path: MountPath
    """Folder in the container."""


REFUSED = {
    r"(?!metadata$|spec$)[^.]+": "an overlay has `metadata` and `spec`, as the template of a pod",
    r"metadata\.(?!labels$|annotations$)[^.]+": "an overlay adds `labels` and `annotations`",
    r"spec\.shareProcessNamespace": "the cell must be process 1 of its container, which gets SIGTERM",
    r"spec\.nodeName": "it goes around the scheduler, which keeps two cells off one node; use `pools.*.node_selector`",
    r"spec\.resources": "the requests of the container decide what is measured: `pools.*.cpus`, `memory`",
    r"spec\.affinity\.nodeAffinity\.requiredDuringSchedulingIgnoredDuringExecution": "its terms are alternatives, so "
    "that a further one would let cells onto other machines; use `pools.*.node_affinity` or "
    "`pools.*.node_requirements`",
    r"spec\.initContainers": "what runs in the pod beside or before the cell is in none of its figures; put it into "
    "the image, or fill a volume beforehand",
    r"spec\.ephemeralContainers": "another container would use the cell's CPUs",
    r"spec\.containers\[\]\.(?!(name|env|envFrom|imagePullPolicy|resources|securityContext|volumeDevices|volumeMounts)$)"
    r"[^.\[]+": "the image's entry point is what is measured, alone and as it is",
    r"spec\.containers\[\]\.resources\.claims": "is a key of the profile: write `gpu.request: claim` there",
    r"spec\.containers\[\]\.resources\.(requests|limits)\.(cpu|memory|nvidia\.com/.*|hugepages-.*)": "it would change "
    "what is measured; set `pools.*.cpus`, `pools.*.memory` or `gpu`",
}
"""Why a field that would falsify a measurement is refused, by its place in a pod; `[]` stands for every item of a list.
What would weaken a cell's isolation is refused by Pod Security, in the namespace that `setup` makes; another value for
what the tool sets, when a Job is rendered."""


def check_overlay(overlay: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return an overlay; ValueError with the place of the first field that is refused."""
    for place, value in _walk(overlay, ""):
        pattern = re.sub(r"\[\d+\]", "[]", place)
        reason = next((reason for refused, reason in REFUSED.items() if re.fullmatch(refused, pattern)), None)
        if pattern == "spec.containers[].name" and value != CONTAINER:
            reason = f"another container would use the cell's CPUs and outlive it; the one to change is `{CONTAINER}`"
        if reason and value not in (None, False):
            raise ValueError(f"{place}: is refused: {reason}")
        # A variable without a value may come from a Secret.
        is_variable = pattern == "spec.containers[].env[]"
        if is_variable and not isinstance(value, dict):
            raise ValueError(f"{place}: expected a variable with `name` and `value`")
        text = value.get("value") if is_variable else None
        if text and (reason := explain_secret_variable(str(value.get("name")), str(text))):
            raise ValueError(f"{place}.value: {reason}")
    return overlay


Overlay = Annotated[dict[str, JsonValue], AfterValidator(check_overlay)]


def _walk(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield every value below `place` with its own, such as `spec.volumes[0].name`."""
    entries = [(f".{key}", child) for key, child in value.items()] if isinstance(value, dict) else []
    items = [(f"[{number}]", child) for number, child in enumerate(value)] if isinstance(value, list) else []
    for suffix, child in (*entries, *items):
        path = f"{place}{suffix}".removeprefix(".")
        yield path, child
        yield from _walk(child, path)


class Profile(Document):
    """What a cluster is like to the cells of a run."""

    name: str
    description: str = ""
    namespace: DnsLabel = "benchmatrix"
    labels: dict[LabelKey, LabelValue] = {}
    """Put on Jobs and pods besides the tool's own, for bills and policies."""
    annotations: dict[LabelKey, str] = {}
    """Put on the pods, after those of `do_not_disrupt`."""
    overlay: Overlay = {}
    """Further fields of the pods, `metadata` and `spec` as in Kubernetes."""
    architecture: Literal["amd64", "arm64"] = "amd64"
    """Of the images: cells keep off nodes with another one (label `kubernetes.io/arch`)."""
    service_account: ObjectName = "benchmatrix-cell"
    """Whose cloud identity the cells have; its token is not mounted."""
    service_account_annotations: dict[LabelKey, str] = {}
    """What ties it to a cloud identity: `eks.amazonaws.com/role-arn`, `iam.gke.io/gcp-service-account`."""
    pools: dict[NodePools, Pool]
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    """Of all prices, three letters as in ISO 4217."""
    gpu: Gpus | None = None
    """null: the cluster has none."""
    registry: ImageReference | None = None
    """Where `benchmatrix images push` put the images of this tool's sources; their tags are their content. null: see
    `images`."""
    image_base: ImageReference | None = None
    """What `--base` was when the images in `registry` were built; it is part of their tags. null: it was not given."""
    image_cpu_index: str | None = None
    """The same for `--cpu-index`."""
    images: dict[Framework, dict[Device, ImageReference]] = {}
    """By framework and device; goes before `registry`."""
    has_compiler: bool = True
    """The PyTorch images have the compiler that torch.compile needs, g++ for a CPU and gcc or clang for a GPU: this
    project's have it."""
    image_pull_secrets: tuple[ObjectName, ...] = ()
    store_secret: ObjectName | None = None
    """A Secret whose keys become variables of the cells, such as `AWS_ACCESS_KEY_ID` (s3),
    `GOOGLE_SERVICE_ACCOUNT_KEY` (gs) or `AZURE_STORAGE_ACCOUNT_KEY` (az). null: the service account's identity is what
    they have."""
    environment: dict[VariableName, str] = {}
    """Variables of the cells that are no secret, such as `AWS_ENDPOINT_URL`."""
    data: Volume | None = None
    """Real data: `data_dir` of a cell names a folder in it."""
    compile_cache: Volume | None = None
    """Where compiled kernels outlive the pods that compiled them; `ReadWriteMany` where cells run on several nodes.
    null: every pod compiles its own."""
    priority_class: ObjectName | None = None
    do_not_disrupt: bool = True
    """Ask the cluster autoscaler, Karpenter and EKS Auto Mode not to evict a cell, by annotations."""
    avoid_faulty_nodes: bool = True
    """Keep later Jobs off nodes that fail cells, by affinity to their names.

    false for Karpenter and EKS Auto Mode, which launch no node for such a pod (kubernetes-sigs/karpenter#3214), and for
    GKE Autopilot, which refuses it (`autogke-node-affinity-selector-limitation`,
    https://docs.cloud.google.com/kubernetes-engine/docs/reference/crds/workloadallowlist)."""
    is_user_assigned: bool = False
    """The cluster gives every pod its user and groups (OpenShift), so that none are asked for."""
    tmp_size: Quantity = "8Gi"
    shm_size: Quantity = "1Gi"
    start_seconds: Count = 900
    """Allowed on top of a cell's `timeout_seconds`, for pulling the image."""
    active_deadline_seconds: Count = 86_400
    """After how long a Job is ended that nobody follows, waiting for a node and pods that were preempted included."""
    ttl_seconds_after_finished: Count = 86_400
    """How long the cluster keeps a finished Job: so long can a runner be away before it misses how a pod died."""
    termination_grace_period_seconds: Count = 60
    """Between SIGTERM and SIGKILL."""
    same_node_patience_seconds: Annotated[int, Field(ge=0, le=86_400)] = 300
    """How long a cell waits for the node on which a cell that it is compared with ran, while no cell of the run is
    there. 0: every cell goes to any node at once."""
    backoff_limit: Annotated[int, Field(ge=0, le=20)] = 2
    """How many pods of a Job may fail for another reason than the cell and a disruption of its node."""

    @model_validator(mode="after")
    def _check_pools(self) -> Self:
        if not self.pools:
            raise ValueError("pools: is empty; write `cpu` or `gpu` below it, with `cpus` and `memory`")
        if self.gpu is None and "gpu" in self.pools:
            raise ValueError("gpu: is missing; say what GPUs the nodes of the pool `gpu` have")
        if self.gpu is not None and "gpu" not in self.pools:
            raise ValueError("gpu: there is no pool `gpu`; write pools.gpu, or `gpu: null`")
        return self

    @model_validator(mode="after")
    def _check_cpus(self) -> Self:
        cpus = {f"pools.{name}.cpus": pool.cpus for name, pool in self.pools.items() if pool.has_exclusive_cores}
        if self.gpu is not None and "pools.gpu.cpus" in cpus:
            cpus |= {f"gpu.sharing.{way}.cpus": found.cpus or 0 for way, found in self.gpu.sharing.items()}
        for place, number in cpus.items():
            if number % 2:
                raise ValueError(
                    f"{place}: {number} is odd; a kubelet with full-pcpus-only gives whole physical cores, which have "
                    "two CPUs each, and refuses the pod (SMTAlignmentError): take an even number"
                )
        return self

    @model_validator(mode="after")
    def _check_additions(self) -> Self:
        if own := sorted(OWN_LABELS & self.labels.keys()):
            raise ValueError(f"labels: {own[0]} is set by the tool; take another key")
        for name, value in self.environment.items():
            if reason := explain_secret_variable(name, value):
                raise ValueError(f"environment.{name}: {reason}")
        return self

    def add_variables(self, variables: Mapping[str, str]) -> Self:
        """Return the profile with a matrix's variables too; UserError for one that is a secret."""
        for name, value in variables.items():
            if reason := explain_secret_variable(name, value):
                raise UserError(f"the matrix's environment.{name}: {reason}")
        return self.model_copy(update={"environment": self.environment | dict(variables)})

    @property
    def pod_annotations(self) -> dict[str, str]:
        return (NO_DISRUPTION if self.do_not_disrupt else {}) | self.annotations

    @property
    def pod_security(self) -> Literal["privileged", "restricted"]:
        """The Pod Security Standard that the pods of all cells meet."""
        offered = [found for found in self.gpu.sharing.values() if found.clients] if self.gpu else []
        return "privileged" if any(found.host_ipc for found in offered) else "restricted"

    def find_sharing(self, cell: Cell) -> GpuSharing | None:
        return None if self.gpu is None else self.gpu.find_sharing(cell)

    def find_pool(self, cell: Cell) -> Pool | None:
        """Return the nodes for a cell and what one tenant takes of them; None if the profile has no such pool."""
        pool, sharing = self.pools.get(cell.device), self.find_sharing(cell)
        return pool if pool is None or sharing is None else share_pool(pool, sharing, list_clients(cell, sharing))

    def in_namespace(self, namespace: str) -> "Profile":
        return self.model_copy(update={"namespace": check_option("--namespace", namespace, check_dns_label)})

    def explain_unsupported(self, cell: Cell) -> str | None:
        if cell.device not in self.pools:
            return f"the profile {self.name} has no pool '{cell.device}'"
        if self.gpu is not None and (reason := self.gpu.explain_unshared(cell, self.name)):
            return reason
        if (cell.framework, cell.mode) == ("pytorch", "compiled") and not self.has_compiler:
            return "compiled PyTorch needs a compiler, and the images have none (has_compiler of the profile)"
        if cell.data_dir is not None:
            if self.data is None:
                return f"data_dir: the profile {self.name} has no `data` volume"
            if not Path(os.path.normpath(cell.data_dir)).is_relative_to(self.data.mount_path):
                place = f"{self.data.mount_path}, the data of the profile {self.name}"
                return f"data_dir: {cell.data_dir} is not in {place}"
        kind, gpu = None, self.gpu
        if gpu is not None:
            kind = GpuKind(name=gpu.name, compute_capability=gpu.compute_capability, num_gpus=gpu.max_per_node)
        return explain_incapable(cell, kind)

    def find_image(self, cell: Cell) -> str:
        image = self.images.get(cell.framework, {}).get(cell.device)
        if image is not None:
            return image
        place = f"profile {self.name}: images.{cell.framework}.{cell.device}"
        if is_image():  # of the runner, whose chart says which images there are
            raise UserError(
                f"{place}: is missing; name the image for {cell.framework} cells on a {cell.device}, in the chart's "
                f"values at `profile.images`: `benchmatrix images push` prints the lines; or have a matrix without them"
            )
        if self.registry is None:
            raise UserError(
                f"{place}: is missing; name the image for {cell.framework} cells on a {cell.device}, or the `registry` "
                f"of all images, in a profile of yours that has `extends: {self.name}`"
            )
        arguments = make_arguments(self.image_base, self.image_cpu_index)
        return name_image(self.registry, find_image(cell.framework, cell.device), arguments)

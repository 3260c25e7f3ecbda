"""Define a profile: nodes, resources, images and identity of a cluster. docs/profiles.md lists all keys."""

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bench.errors import UserError
from bench.schema import Cell, Device, Framework
from bench.schema.document import Count, Document
from runner.capabilities import GpuKind
from runner.images.names import find_image, make_arguments, name_image
from runner.kubernetes.names import (
    OWN_LABELS,
    AnnotationValue,
    DnsLabel,
    ImageReference,
    LabelKey,
    LabelValue,
    MountPath,
    ObjectName,
    Quantity,
    VariableName,
    VariableValue,
    check_dns_label,
    check_option,
    explain_secret_variable,
)
from runner.profiles.overlay import Overlay
from runner.profiles.pools import NO_DISRUPTION, Gpus, GpuSharing, Pool, list_clients, share_pool
from runner.sources import is_image

NodePools = Literal["cpu", "gpu"]


class Data(Document):
    """A volume with real data for cells with `data_dir`."""

    claim: ObjectName
    """Name of the PersistentVolumeClaim."""
    mount_path: MountPath
    """Folder in the container; `data_dir` names a folder in it."""


class CompileCache(Document):
    """A volume in which compiled kernels outlive the pods that compiled them."""

    claim: ObjectName
    """Name of the PersistentVolumeClaim; `ReadWriteMany` where cells run on several nodes."""
    mount_path: MountPath
    """Folder in the container."""


class Profile(Document):
    """What a cluster is like to the cells of a run."""

    name: str
    description: str = ""
    namespace: DnsLabel = "benchmatrix"
    labels: dict[LabelKey, LabelValue] = {}
    """Put on Jobs and pods besides the tool's own, for bills and policies."""
    annotations: dict[LabelKey, AnnotationValue] = {}
    """Put on the pods, after those of `do_not_disrupt`."""
    overlay: Overlay = {}
    """Further fields of the pods, `metadata` and `spec` as in Kubernetes."""
    architecture: Literal["amd64", "arm64"] = "amd64"
    """Of the images: cells keep off nodes with another one (label `kubernetes.io/arch`)."""
    service_account: ObjectName = "benchmatrix-cell"
    """Whose cloud identity the cells have; its token is not mounted."""
    service_account_annotations: dict[LabelKey, AnnotationValue] = {}
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
    image_cpu_index: VariableValue | None = None
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
    environment: dict[VariableName, VariableValue] = {}
    """Variables of the cells that are no secret, such as `AWS_ENDPOINT_URL`."""
    data: Data | None = None
    compile_cache: CompileCache | None = None
    """null: every pod compiles its own kernels."""
    priority_class: ObjectName | None = None
    do_not_disrupt: bool = True
    """Ask the cluster autoscaler, Karpenter and EKS Auto Mode not to evict a cell, by annotations."""
    avoid_faulty_nodes: bool = True
    """Keep later Jobs off nodes that fail cells, by affinity to `kubernetes.io/hostname`.

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
    def _check_tenants(self) -> Self:
        pool = self.pools.get("gpu")
        for name, sharing in self.gpu.sharing.items() if self.gpu and pool and pool.has_exclusive_cores else ():
            if sharing.cpus is not None and sharing.cpus % 2:
                raise ValueError(
                    f"gpu.sharing.{name}.cpus: {sharing.cpus} is odd; the kubelets of pools.gpu give whole physical "
                    "cores (has_exclusive_cores), which have two CPUs each: take an even number"
                )
        return self

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        own = sorted(OWN_LABELS & self.labels.keys())
        if own:
            raise ValueError(f"labels: {own[0]} is set by the tool; take another key")
        return self

    @model_validator(mode="after")
    def _check_environment(self) -> Self:
        for name, value in self.environment.items():
            if reason := explain_secret_variable(name, value):
                raise ValueError(f"environment.{name}: {reason}")
        return self

    @property
    def pod_annotations(self) -> dict[str, str]:
        return (NO_DISRUPTION if self.do_not_disrupt else {}) | self.annotations

    @property
    def gpu_kind(self) -> GpuKind | None:
        """Describe the GPUs that a cell can have on one node; None where the profile has none."""
        if self.gpu is None:
            return None
        return GpuKind(
            name=self.gpu.name, compute_capability=self.gpu.compute_capability, num_gpus=self.gpu.max_per_node
        )

    @property
    def pod_security(self) -> Literal["privileged", "restricted"]:
        """The Pod Security Standard that the pods of all cells meet."""
        offered = [found for found in self.gpu.sharing.values() if found.clients] if self.gpu else []
        return "privileged" if any(found.host_ipc for found in offered) else "restricted"

    def find_sharing(self, cell: Cell) -> GpuSharing | None:
        """Return how the nodes for a cell share their GPUs; None if it needs none that do."""
        return None if self.gpu is None else self.gpu.find_sharing(cell)

    def find_pool(self, cell: Cell) -> Pool | None:
        """Return the nodes for a cell and what one tenant takes of them; None if the profile has no such pool."""
        pool, sharing = self.pools.get(cell.device), self.find_sharing(cell)
        return pool if pool is None or sharing is None else share_pool(pool, sharing, list_clients(cell, sharing))

    def in_namespace(self, namespace: str) -> "Profile":
        """Return the profile with another namespace; UserError if that is no name for one."""
        return self.model_copy(update={"namespace": check_option("--namespace", namespace, check_dns_label)})

    def explain_unsupported(self, cell: Cell) -> str | None:
        """Return why this cluster cannot run the cell, apart from what `runner.capabilities` knows; None if it can."""
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
                return (
                    f"data_dir: {cell.data_dir} is not in {self.data.mount_path}, the data of the profile {self.name}"
                )
        return None

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

"""Render a queue of Kueue for the cells of a profile: its flavours, its quotas in cells, its name in the namespace."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import yaml

from bench.errors import UserError
from bench.schema import Cell, PlannedCell
from runner.kubernetes.kueue import KNOWN_VERSIONS
from runner.kubernetes.node_labels import read_quantity
from runner.kubernetes.pod_requests import sum_requests
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.rendering.job_template import JobRenderer, render_manifest
from runner.kubernetes.syntax import check_object_name, check_option, check_queue
from runner.profiles.model import NodePools, Profile, Toleration

ALWAYS_COVERED = ("cpu", "memory", "ephemeral-storage")
"""A resource that a cell requests and its queue does not cover keeps the cell from ever being admitted."""
PREFIX = "benchmatrix"
_SAMPLE_CELL: Any = {"model": "conv6", "framework": "pytorch", "phase": "infer", "input_size": 32, "num_classes": 10}
"""Any cell: what it requests depends on its device and its number of GPUs alone."""


@dataclass(frozen=True, kw_only=True)
class Flavor:
    """A ResourceFlavor, and the quotas that a ClusterQueue has of it."""

    name: str
    node_labels: Mapping[str, str]
    node_taints: tuple[Toleration, ...]
    quotas: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class QueueTemplate:
    """A queue for the cells of a profile."""

    profile: Profile
    queue: str
    """The name of the LocalQueue."""
    num_cells: Mapping[NodePools, int]
    """How many cells of a pool may run at once, before anything is borrowed; a pool that is not named has no quota."""
    cohort: str | None = None
    """Queues of the same cohort lend each other what they do not use."""

    @classmethod
    def parse(cls, profile: Profile, queue: str, quotas: Sequence[str], cohort: str | None) -> "QueueTemplate":
        """Return the queue that the options `--queue`, `--quota POOL=CELLS` and `--cohort` name; UserError if none."""
        check_option("--queue", queue, check_queue)
        if cohort is not None:
            check_option("--cohort", cohort, check_object_name)
        num_cells: dict[NodePools, int] = {}
        for text in quotas:
            pool, _, number = text.partition("=")
            if pool not in profile.pools or not re.fullmatch(r"\d{1,6}", number):
                expected = " or ".join(f"{name}=CELLS" for name in profile.pools)
                raise UserError(f"--quota {text}: expected {expected}: how many cells of the pool may run at once")
            if pool == "gpu" and profile.gpu and profile.gpu.request == "claim":
                raise UserError(
                    f"--quota {text}: profile {profile.name} claims its GPUs (gpu.request: claim), which these quotas "
                    "do not count; write the queue by hand: "
                    "https://kueue.sigs.k8s.io/docs/concepts/dynamic_resource_allocation/"
                )
            num_cells["gpu" if pool == "gpu" else "cpu"] = int(number)
        return cls(profile=profile, queue=queue, num_cells=num_cells, cohort=cohort)

    @property
    def cluster_queue(self) -> str:
        """The name of the ClusterQueue, which is in no namespace."""
        return f"{self.profile.namespace}-{self.queue}"

    def render(self, api_version: str) -> list[dict[str, Any]]:
        """Return the manifests in the order to apply them. `api_version`: as the cluster serves it."""
        flavors = list(self._make_flavors())
        text = render_manifest(
            "queue.yaml.j2",
            profile=self.profile,
            api_version=api_version,
            cohort_key="cohort" if api_version.endswith(KNOWN_VERSIONS[1]) else "cohortName",
            queue=self.queue,
            cluster_queue=self.cluster_queue,
            cohort=self.cohort,
            flavors=flavors,
            resources=list(flavors[0].quotas),
        )
        return list(yaml.safe_load_all(text))

    def _make_flavors(self) -> Iterator[Flavor]:
        """Yield a flavour for each pool, that of CPU cells first."""
        pools = sorted(self.profile.pools)
        requests = {pool: self._read_requests(pool) for pool in pools}
        resources = list(dict.fromkeys((*ALWAYS_COVERED, *(name for found in requests.values() for name in found))))
        for pool in pools:
            number = self.num_cells.get(pool, 0)
            amounts = {name: number * requests[pool].get(name, Decimal(0)) for name in resources}
            quotas = {name: f"{amount:f}" if amount else "0" for name, amount in amounts.items()}
            labels, taints = self._find_marks(pool)
            name = self._name_flavor(pool, labels, taints)
            yield Flavor(name=name, node_labels=labels, node_taints=taints, quotas=quotas)

    def _read_requests(self, pool: NodePools) -> dict[str, Decimal]:
        """Return what a cell of the pool requests at the most: with all GPUs of a node."""
        gpus = self.profile.gpu.max_per_node if self.profile.gpu and pool == "gpu" else 1
        cell = Cell.model_validate(_SAMPLE_CELL | {"device": pool, "num_gpus": gpus, "batch_size": gpus})
        # The image does not matter here, and need not have been named yet.
        images: Any = {cell.framework: {cell.device: "image"}}
        renderer = JobRenderer(
            profile=self.profile.model_copy(update={"images": images}), store_url="s3://bucket", git_revision=None
        )
        planned = PlannedCell(cell=cell, repeats=1, timeout_seconds=1.0)
        key = JobKey(run_id="setup", cell_id=cell.cell_id, number=1, retry_round=0)
        job = json.loads(renderer.render(planned, key))
        room = {"ephemeral-storage": read_quantity(self.profile.tmp_size)}
        return room | sum_requests(job["spec"]["template"]["spec"])

    def _find_marks(self, pool: NodePools) -> tuple[Mapping[str, str], tuple[Toleration, ...]]:
        """Return the labels and taints that keep cells of the other pool from the quota of this one.

        UserError if the pool of GPU cells has neither.
        """
        found, cpu_pool = self.profile.pools[pool], self.profile.pools.get("cpu")
        labels = dict(found.node_selector)
        if pool == "cpu" or cpu_pool is None:
            return labels, ()
        own = [item for item in found.tolerations if item.key not in {other.key for other in cpu_pool.tolerations}]
        usable = [item for item in own if item.effect in (None, "NoSchedule")]
        taints = tuple(item.model_copy(update={"effect": "NoSchedule"}) for item in usable)
        if not taints and not labels.items() - cpu_pool.node_selector.items():
            raise UserError(
                f"profile {self.profile.name}: pools.gpu: has no toleration and no node_selector that pools.cpu lacks, "
                "so that CPU cells could take the quota of the GPU nodes; taint them, and write the toleration"
            )
        return labels, taints[:1]

    def _name_flavor(self, pool: NodePools, labels: Mapping[str, str], taints: Sequence[Toleration]) -> str:
        """Return a name that flavours have in common whose nodes are alike: a cohort lends quota of one flavour."""
        kind = self.profile.gpu.name if pool == "gpu" and self.profile.gpu else pool
        name = f"{PREFIX}-{re.sub('[^a-z0-9]+', '-', kind.lower()).strip('-')}"
        marks = json.dumps([sorted(labels.items()), [taint.model_dump() for taint in taints]])
        return f"{name}-{hashlib.sha256(marks.encode()).hexdigest()[:6]}" if labels or taints else name

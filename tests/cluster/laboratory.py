"""A laboratory on a cluster: users with queues of a real Kueue in one cohort, whose Jobs run on fake nodes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from commands import create
from queues import Queues, make_groups
from runs import wait_for

from fake_kubelet import Pod
from runner.kubernetes.connection import Connection

GPU = "nvidia.com/gpu"
JOB_LABEL = "benchmatrix/cell-id"
"""Of the pods: the number of their job. The fake kubelet runs only pods with the labels of cells."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
TAKES_BACK = {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"}


@dataclass(kw_only=True)
class Laboratory:
    """Submits the jobs of users; users and jobs are known by their numbers."""

    connection: Connection
    namespace: str
    queues: Queues
    _last_second: int = field(default_factory=lambda: int(time.time()))

    def add_users(self, quotas: Sequence[int], weights: Sequence[float], num_gpus: int) -> None:
        """Make a queue for each user; what no user is guaranteed, the cohort has."""
        flavor = self.queues.add_flavor()
        rest = make_groups({flavor: {GPU: str(num_gpus - sum(quotas))}})
        cohort = f"{self.namespace}-lab"
        self.queues.apply({"kind": "Cohort", "metadata": {"name": cohort}, "spec": {"resourceGroups": rest}})
        for user, (quota, weight) in enumerate(zip(quotas, weights, strict=True)):
            sharing = {"weight": str(weight)}
            name, quotas_by_flavor = f"user-{user}", {flavor: {GPU: str(quota)}}
            self.queues.add(name, quotas_by_flavor, cohort=cohort, preemption=TAKES_BACK, fairSharing=sharing)
        for user in range(len(quotas)):
            self.queues.await_condition(f"user-{user}", "True")

    def await_next_second(self) -> None:
        """Wait until the clock shows another second than at the last call: Kubernetes' times have no fractions."""
        wait_for(lambda: int(time.time()) > self._last_second, "the next second")
        self._last_second = int(time.time())

    def submit(self, number: int, user: int) -> None:
        """Create the Job of a user, for Kueue to start."""
        labels = {"benchmatrix/run-id": self.namespace, JOB_LABEL: str(number), "benchmatrix/repeat": "1"}
        container = {"name": "bench", "image": "example", "resources": {"limits": {GPU: "1"}}}
        pod = {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": [container]}}
        own = {"name": f"job-{number}", "labels": {QUEUE_LABEL: f"user-{user}", JOB_LABEL: str(number)}}
        body = {"metadata": own, "spec": {"suspend": True, "template": pod}}
        create(self.connection, f"/apis/batch/v1/namespaces/{self.namespace}/jobs", body)

    def list_jobs(self) -> list[dict[str, Any]]:
        return self.connection.list_items(f"/apis/batch/v1/namespaces/{self.namespace}/jobs")

    def list_running(self) -> frozenset[int]:
        """Return the jobs that Kueue lets run and that have not ended."""
        return frozenset(
            number_of(job) for job in self.list_jobs() if not job["spec"]["suspend"] and not has_ended(job)
        )


def number_of(named: Pod) -> int:
    return int(named["metadata"]["labels"][JOB_LABEL])


def has_ended(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions") or ()
    return any((item["type"], item["status"]) == ("Complete", "True") for item in conditions)

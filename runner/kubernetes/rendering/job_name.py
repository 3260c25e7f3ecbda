"""The name and the labels of Jobs, which tie the cluster to the store."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

# Of a Job whose pods' names add 6 characters; the hash keeps it unique.
_MAX_SLUG = 40
_HASH_DIGITS = 12
RUN_LABEL = "benchmatrix/run-id"
CELL_LABEL = "benchmatrix/cell-id"
REPEAT_LABEL = "benchmatrix/repeat"
POOL_LABEL = "benchmatrix/pool"
OWN_LABELS = frozenset(
    {
        RUN_LABEL,
        CELL_LABEL,
        REPEAT_LABEL,
        POOL_LABEL,
        "app.kubernetes.io/name",
        "app.kubernetes.io/component",
        "app.kubernetes.io/managed-by",
        "kueue.x-k8s.io/queue-name",
    }
)
"""Keys in manifests/job.yaml.j2 that a profile's labels must not replace."""
COMPONENT = "app.kubernetes.io/name=benchmatrix,app.kubernetes.io/component=cell"


@dataclass(frozen=True, kw_only=True)
class JobKey:
    """What a Job measures: the `number`-th repeat of a cell, retried for the `retry_round`-th time."""

    run_id: str
    cell_id: str
    number: int
    retry_round: int
    """How many terminal records the repeat had when the Job was created: 0, or more after `--retry-failed`."""

    @cached_property
    def job_name(self) -> str:
        """A DNS-1123 label of at most 53 characters, equal on every machine: no Job is created twice."""
        text = "\n".join((self.run_id, self.cell_id, str(self.number), str(self.retry_round)))
        digits = hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
        slug = self.cell_id.rpartition("-")[0][:_MAX_SLUG].strip("-")
        return f"{slug or 'cell'}-{digits}"


def select_run(run_id: str) -> str:
    """Return the label selector of the Jobs and pods of a run."""
    return f"{COMPONENT},{RUN_LABEL}={run_id}"

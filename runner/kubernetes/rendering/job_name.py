"""The name and the labels of Jobs, which tie the cluster to the store."""

import hashlib
from dataclasses import dataclass, field

# Of a Job whose pods' names add 6 characters; the hash keeps it unique.
_MAX_SLUG = 40
_HASH_DIGITS = 12
RUN_LABEL = "benchmatrix/run-id"
CELL_LABEL = "benchmatrix/cell-id"
REPEAT_LABEL = "benchmatrix/repeat"
FINGERPRINT_LABEL = "benchmatrix/fingerprint"
STORE_LABEL = "benchmatrix/store"
"""Whose Job it is: that of the run whose store it writes to, as `hash_store` has it."""
POOL_LABEL = "benchmatrix/pool"
OWN_LABELS = frozenset(
    {
        RUN_LABEL,
        CELL_LABEL,
        REPEAT_LABEL,
        FINGERPRINT_LABEL,
        STORE_LABEL,
        POOL_LABEL,
        "app.kubernetes.io/name",
        "app.kubernetes.io/component",
        "app.kubernetes.io/managed-by",
        "kueue.x-k8s.io/queue-name",
    }
)
"""Keys in manifests/job.yaml.j2 that a profile's labels must not replace."""
COMPONENT = "app.kubernetes.io/name=benchmatrix,app.kubernetes.io/component=cell"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobKey:
    """What a Job measures: the `number`-th repeat of a cell, retried for the `retry_round`-th time.

    A run may have 100,000 of them.
    """

    run_id: str
    cell_id: str
    number: int
    retry_round: int
    """How many terminal records the repeat had when the Job was created: 0, or more if it is measured again."""
    fingerprint: str = ""
    """What the Jobs of the run have in common, see runner.kubernetes.fingerprint; empty: of no stored run."""
    job_name: str = field(init=False, compare=False)
    """A DNS-1123 label of at most 53 characters, equal on every machine: no Job is created twice."""

    def __post_init__(self) -> None:
        text = "\n".join((self.run_id, self.cell_id, str(self.number), str(self.retry_round), self.fingerprint))
        digits = hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
        slug = self.cell_id.rpartition("-")[0][:_MAX_SLUG].strip("-")
        object.__setattr__(self, "job_name", f"{slug or 'cell'}-{digits}")


def hash_store(url: str) -> str:
    """Return the label's value for a store; slashes at the end of its URL name the same store."""
    return hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:_HASH_DIGITS]


def select_run(run_id: str, *, fingerprint: str | None = None, store_url: str | None = None) -> str:
    """Return the label selector of the Jobs and pods of a run, those with its fingerprint or its store if given.

    Without both, the Jobs of another run of the same name are among them.
    """
    labels = {RUN_LABEL: run_id, FINGERPRINT_LABEL: fingerprint, STORE_LABEL: store_url and hash_store(store_url)}
    return ",".join([COMPONENT, *(f"{name}={value}" for name, value in labels.items() if value is not None)])

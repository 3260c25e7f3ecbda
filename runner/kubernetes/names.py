"""Names, labels and values as Kubernetes takes them, and the names and labels of the runner's Jobs."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator

from bench.errors import UserError
from bench.redaction import is_secret_variable
from runner.yaml_input import quote

# Texts that Kubernetes does not take are refused before anything is sent. The rules:
# k8s.io/apimachinery/pkg/util/validation, k8s.io/kubernetes/pkg/apis/core/validation and, for images,
# github.com/distribution/reference.
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_HOST_PART = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IMAGE_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"


def _make_check(pattern: str, expected: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(f"expected {expected}")
        return text

    return check


check_dns_label = _make_check(
    r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", "a name of a-z, 0-9 and '-' (no '-' at its ends, at most 63 characters)"
)
check_object_name = _make_check(
    rf"(?=.{{1,253}}$){_SUBDOMAIN}",
    "a name of a-z, 0-9, '-' and '.' (letters or digits at its ends and around dots, at most 253 characters)",
)
check_label_key = _make_check(
    rf"(?:(?=[^/]{{1,253}}/){_SUBDOMAIN}/)?{_WORD}",
    "a label's key, such as `cloud.google.com/gke-accelerator` (at most 63 characters after /)",
)
check_label_value = _make_check(
    rf"(?:{_WORD})?",
    "a label's value: letters, digits, '-', '_' and '.' (letters or digits at its ends, at most 63 characters)",
)
check_resource = _make_check(  # a ResourceQuota writes `requests.` before it
    rf"(?!requests\.)(?![^/]*kubernetes\.io/)(?=[^/]{{1,244}}/){_SUBDOMAIN}/{_WORD}",
    "what the device plugin calls a GPU, such as `nvidia.com/gpu` or `nvidia.com/gpu.shared`",
)
check_quantity = _make_check(  # about 2^60 bytes at most: what is computed of it stays within Kubernetes' 64 bits
    r"[1-9](?:[0-9]{0,17}|[0-9]{0,14}(?:Ki|k)|[0-9]{0,11}(?:Mi|M)|[0-9]{0,8}(?:Gi|G)|[0-9]{0,5}(?:Ti|T))",
    "an amount of bytes such as `12Gi` or `500M` (a whole number and Ki, Mi, Gi, Ti, k, M, G, T)",
)
check_image = _make_check(
    rf"(?=.{{1,512}}$)(?:{_HOST_PART}(?:\.{_HOST_PART})*(?::[0-9]{{1,5}})?/)?{_IMAGE_PART}(?:/{_IMAGE_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    "an image such as `registry.example/team/pytorch:1` or `...@sha256:` and 64 hex digits",
)
check_variable_name = _make_check(
    r"(?!BENCH_|HOME$)[A-Za-z_][A-Za-z0-9_]{0,252}",
    "a variable's name: letters, digits and '_', no digit first; HOME and BENCH_... are set by the tool",
)
check_mount_path = _make_check(
    r"(?=.{1,4096}$)(?!/(?:dev|dev/shm|proc|sys|tmp)$)(?:/(?!\.\.?(?:/|$))[^/:]+)+",
    "the path of a folder such as `/data`, without ':', '.', '..' and a '/' behind, none of /dev, /proc, /sys, /tmp",
)


def explain_secret_variable(name: str, value: str) -> str | None:
    """Return why a variable must not be given as text, which all who may read Jobs would see, without the value."""
    if not is_secret_variable(name, value):
        return None
    return (
        "is a credential, which would stand in every Job; put it into a Secret of the namespace, for the store as "
        "`store_secret`, for others as `valueFrom.secretKeyRef` of a variable in the overlay"
    )


def check_option(option: str, text: str, check: Callable[[str], str]) -> str:
    try:
        return check(text)
    except ValueError as error:
        raise UserError(f"{option}: found {quote(text)}, {error}") from None


def check_queue(text: str) -> str:
    """Return the name of Kueue's LocalQueue, which is a label's value as well."""
    return check_label_value(check_object_name(text))


DnsLabel = Annotated[str, AfterValidator(check_dns_label)]
ObjectName = Annotated[str, AfterValidator(check_object_name)]
LabelKey = Annotated[str, AfterValidator(check_label_key)]
LabelValue = Annotated[str, AfterValidator(check_label_value)]
Resource = Annotated[str, AfterValidator(check_resource)]
Quantity = Annotated[str, AfterValidator(check_quantity)]
VariableName = Annotated[str, AfterValidator(check_variable_name)]
ImageReference = Annotated[str, AfterValidator(check_image)]
MountPath = Annotated[str, AfterValidator(check_mount_path)]


# Of a Job whose pods' names add 6 characters; the hash keeps it unique.
_MAX_SLUG = 40
HASH_DIGITS = 12
"""48 bits: a namespace with a million runs has two alike with a chance of 0.2 %."""
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
CONTAINER = "bench"
"""The container of a cell's pod, of several tenants the first."""
COMPONENT = "app.kubernetes.io/name=benchmatrix,app.kubernetes.io/component=cell"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobKey:
    """What a Job measures: the `number`-th repeat of a cell, retried for the `retry_round`-th time."""

    run_id: str
    cell_id: str
    number: int
    retry_round: int
    """How many terminal records the repeat had when the Job was created: 0, or more if it is measured again."""
    fingerprint: str = ""
    """What the Jobs of the run have in common, see runner.kubernetes.rendering; empty: of no stored run."""
    job_name: str = field(init=False, compare=False)
    """A DNS-1123 label of at most 53 characters, equal on every machine: no Job is created twice."""

    def __post_init__(self) -> None:
        text = "\n".join((self.run_id, self.cell_id, str(self.number), str(self.retry_round), self.fingerprint))
        digits = hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
        slug = self.cell_id.rpartition("-")[0][:_MAX_SLUG].strip("-")
        object.__setattr__(self, "job_name", f"{slug or 'cell'}-{digits}")


def make_path(namespace: str, kind: str) -> str:
    return f"/{'apis/batch' if kind == 'jobs' else 'api'}/v1/namespaces/{namespace}/{kind}"


def hash_store(url: str) -> str:
    """Return the label's value for a store; slashes at the end of its URL name the same store."""
    return hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:HASH_DIGITS]


def select_run(run_id: str, *, fingerprint: str | None = None, store_url: str | None = None) -> str:
    """Return the label selector of the Jobs and pods of a run.

    Without `fingerprint` and `store_url`, it also selects those of another run of the same name.
    """
    labels = {RUN_LABEL: run_id, FINGERPRINT_LABEL: fingerprint, STORE_LABEL: store_url and hash_store(store_url)}
    return ",".join([COMPONENT, *(f"{name}={value}" for name, value in labels.items() if value is not None)])

"""Define what a profile asks of nodes: labels, taints that do not matter, and that they are left to a cell."""

from typing import Literal, Self

from pydantic import model_validator

from bench.schema.document import Document
from runner.kubernetes.syntax import LabelKey, LabelValue

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

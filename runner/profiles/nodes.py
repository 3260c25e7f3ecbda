"""What a profile asks of nodes: labels that they must have, and taints that do not matter."""

from typing import Literal, Self

from pydantic import model_validator

from bench.schema.document import Document
from runner.kubernetes.syntax import LabelKey, LabelValue


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

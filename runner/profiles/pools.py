"""Define the nodes of a profile for cells of one device, and what a cell takes of such a node."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from bench.schema.document import Count, Document
from runner.kubernetes.syntax import LabelKey, LabelValue, ObjectName, Quantity
from runner.profiles.nodes import OWN_NODE_LABELS, NodeRequirement, Toleration


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

"""Run: what one execution of a matrix set out to do; on a cluster a Placement and NodeFaults; removals; nights."""

import json
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from typing import Annotated, Literal

from pydantic import Field

from bench.registry import Device
from bench.schema.cell import Cell
from bench.schema.document import (
    AttemptDocument,
    Bytes,
    CellId,
    CheckedDocument,
    Count,
    Document,
    Integer,
    Name,
    Number,
    PlanDocument,
    PositiveAmount,
    PositiveSeconds,
    Seconds,
    StoredDocument,
    Time,
    VersionedDocument,
    hash_text,
)
from bench.schema.measurement import Verdict
from bench.schema.result import Status

# Readers hold a row for every planned repeat.
MAX_REPEATS = 10_000


class Stopping(PlanDocument):
    """How many repeats a cell gets is decided by the spread of its first ones (see docs/statistics.md)."""

    first: Annotated[int, Field(ge=2, le=MAX_REPEATS)]
    """Repeats of the first stage. The interval rests on their spread alone, however many follow."""
    most: Annotated[int, Field(ge=2, le=MAX_REPEATS)]
    half_width: Annotated[float, Field(gt=0, lt=1)]
    """The half width of the cell's 95 % interval that is aimed at, as a share of its step time."""
    is_decided: bool = False
    """Whether the first stage has said how many there are."""


class PlannedCell(PlanDocument):
    """A cell with what the executor needs to know about it."""

    cell: Cell
    repeats: Annotated[int, Field(ge=1, le=MAX_REPEATS)]
    """With `stopping` at first those of the first stage; raised when these are there."""
    stopping: Stopping | None = None
    timeout_seconds: PositiveSeconds
    """How long one attempt may take, import included."""

    @property
    def may_grow(self) -> bool:
        """Whether those of the first stage are all that is planned, and may ask for more."""
        return self.stopping is not None and self.repeats == self.stopping.first


class LeftOutCell(PlanDocument):
    """A cell of the matrix that cannot run where the run takes place."""

    cell: Cell
    reason: str


class Cluster(Document):
    """The cluster of a run, as its user names it."""

    context: str
    """The context of the kubeconfig, or `in-cluster`."""
    namespace: str
    profile: str
    queue: str | None = None
    """Kueue's LocalQueue that the Jobs were handed to."""
    authorities: tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")], ...] = ()
    """SHA-256 of each certificate that the API server's own is checked by, in hex, sorted. Empty: not recorded."""


class MissingRepeat(Document):
    """A planned repeat that has no terminal record."""

    cell_id: CellId
    repeat: Count


class Ending(Document):
    """How far a run was when its report was published."""

    published_at: Time
    num_repeats: dict[str, Number]
    """Planned repeats by the status of their newest record; `missing`: without one, `unreadable`: with one that the
    store does not give."""
    missing: tuple[MissingRepeat, ...]
    """Those without a record that can be read, as where the run's deadline passed before they were measured. Empty: the
    run is complete."""


class Run(CheckedDocument, StoredDocument):
    """What one execution of a matrix set out to do. Progress is its planned repeats minus the result keys present."""

    run_id: Name
    matrix: Name
    created_at: Time
    executor: Literal["local", "kubernetes"]
    cluster: Cluster | None = None
    """Where the Jobs of the run are; null for one on a single machine."""
    hostname: str
    user: str
    tool_version: str
    git_revision: str | None
    cells: tuple[PlannedCell, ...]
    left_out: tuple[LeftOutCell, ...]
    order_seed: Integer | None = None
    """What the order of the cells in each round of repeats was drawn from; null: their order in the matrix, always."""
    environment: dict[str, str] = {}
    """Variables of the measuring processes that the matrix sets."""
    ending: Ending | None = None
    """Only in `latest/run.json`: a run's own document is written before anything is measured."""

    def find_contradictions(self) -> Iterator[str]:
        # Each result would count once for every time that its cell stands here.
        for cell_id, count in Counter(planned.cell.cell_id for planned in self.cells).items():
            if count > 1:
                yield f"cells: '{cell_id}' is planned {count} times; keep one, with all its repeats"

    @property
    def plan_id(self) -> str:
        """8 hex digits, equal for equal plans: same cells, repeats and variables. Time limits may differ."""
        asked = [
            (one.cell.cell_id, one.stopping.model_dump(exclude={"is_decided"}) if one.stopping else one.repeats)
            for one in self.cells
        ]
        plan: list[object] = [sorted(asked, key=itemgetter(0))]
        return hash_text(json.dumps([*plan, self.environment] if self.environment else plan[0]))

    @property
    def num_repeats(self) -> int:
        """Planned repeats of all cells."""
        return sum(planned.repeats for planned in self.cells)


class Node(Document):
    """What a node of a cluster says of itself. A field that it has no label for is null: unknown."""

    instance_type: str | None = None
    """The cloud's machine type, such as `n1-standard-4`: the label `node.kubernetes.io/instance-type`."""
    region: str | None = None
    """`topology.kubernetes.io/region`."""
    zone: str | None = None
    """`topology.kubernetes.io/zone`."""
    is_spot: bool | None = None
    """The cloud may take the machine back at any time and sells it cheaper for that. null: no label says."""
    capacity_label: str | None = None
    """The label that `is_spot` was read from, as `KEY=VALUE`; null where a missing label says it."""
    kubelet_version: str | None = None
    container_runtime: str | None = None
    """Such as `containerd://2.1.4`."""
    os_image: str | None = None
    num_cpus: Count | None = None
    """Cores of the node, hyperthreads counted."""
    gpu_labels: dict[str, str] = {}
    """What labels say of its GPUs: `nvidia.com/gpu.product`, `cloud.google.com/gke-accelerator` and the like."""


class Placement(AttemptDocument):
    """Where in a cluster one attempt at one repeat ran. Locally there is none."""

    pod: str
    node_name: str
    image_id: str | None = None
    """The image that ran, by digest: `imageID` of the container's status. null: the runtime named none."""
    qos_class: str | None = None
    """`Guaranteed`, `Burstable` or `BestEffort`."""
    cpu_request_cores: PositiveAmount | None = None
    """Cores that the container requested."""
    other_containers: tuple[str, ...] = ()
    """The names of containers that ran in the pod beside those that measured, such as a proxy that a policy added."""
    node: Node | None = None
    """null: the runner may not read nodes, or the node was gone."""


class NodeFault(AttemptDocument):
    """One attempt that a node could not measure for a reason of its own; the repeat is measured again."""

    retry_round: Number
    """How many terminal records the repeat had then: 0, or more if it was measured again."""
    pool: Literal["cpu", "gpu"]
    node_name: str | None = None
    """null: the pod was gone before a runner saw it."""
    hostname: str | None = Field(default=None, exclude=True, repr=False)
    """Ignored: earlier versions kept later Jobs off the node by it."""
    reason: str
    """What the container or the kubelet said, in one line."""
    at: Time
    """When the attempt ended."""
    num_in_a_row: Count = 1
    """How many attempts on this node had ended so since the last that ended ok, as far as the runner knew."""
    is_left_out: bool = False
    """Later Jobs of the run keep off the node."""


class RemovedResult(Document):
    """A raw result that was removed, with what later commands need to know of it without its rows."""

    cell_id: CellId
    repeat: Count
    attempt: Name
    status: Status
    attempt_seconds: Seconds
    """From the start of the attempt to its end."""
    verdict: Verdict | None = None
    """None: it had none, or was removed by a version that did not record it."""
    is_contaminated: bool | None = None
    """Whether others disturbed the measurement, also where the verdict is a graver one. None: not recorded."""
    num_bytes: Bytes
    version: str
    """Tells it from another object of the same key; see `bench.store.StoredObject`."""


class RawRemoval(StoredDocument):
    """Which raw results of a run were removed on purpose. Their repeats are measured; their rows are in the data set.

    It is written before the first of them is deleted: what it names and what is still there was not deleted yet.
    """

    run_id: Name
    at: Time
    tool_version: str
    policy: str
    """What asked for it, such as `--raw-older-than 90d`."""
    results: Annotated[tuple[RemovedResult, ...], Field(min_length=1)]


WatchedMetric = Literal["step-time", "cold-start"]
Direction = Literal["slower", "faster"]
Outcome = Literal["confirmed", "dismissed", "undecided"]
Probability = Annotated[float, Field(ge=0, le=1)]


class NightChange(Document):
    """What differs between the last night before a change and the night in which it was seen."""

    what: str
    """Such as `driver_version`, `image`, `instance_type`, `framework_version`, `git_revision`."""
    before: str | None
    """The values of the cells concerned, joined where there are several. null: not recorded."""
    after: str | None


class Shift(Document):
    """By how much a series changed: the step time after the change over the one before it."""

    ratio: PositiveAmount
    low: PositiveAmount
    """Of the 95 % interval."""
    high: PositiveAmount
    p_value: Probability
    """One-sided, of no change in this direction; not adjusted for the number of cells and nights."""
    num_nights_before: Count
    num_nights_after: Count


class Suspicion(StoredDocument):
    """A change that the nightly runs suggest. It stands until its Decision, which a confirmation run decides."""

    matrix: Name
    change_id: Name
    """8 hex digits, equal for equal cells and nights: a program that was killed writes the same document again."""
    direction: Direction
    metric: WatchedMetric = "step-time"
    """`cold-start`: import, build and first step together, where no compiled program was loaded."""
    cell_ids: Annotated[tuple[CellId, ...], Field(min_length=1)]
    """One cell; or several that share hardware and changed together, of which these are measured again."""
    num_cells: Count
    """Cells that the change is of: more than `cell_ids` where all of some hardware changed."""
    device: Device
    hardware: str
    """CPU model and GPU name that the series was measured on."""
    instance_types: tuple[str, ...] = ()
    """Machine types of the night's repeats, as the nodes are labelled; empty: not recorded."""
    night_run_id: Name
    """The run in which the change was seen."""
    first_run_id: Name
    """The first run after the change, as far as the series shows."""
    seen_at: Time
    """When the run began in which the change was seen."""
    shift: Shift
    night_deviation: PositiveAmount
    """Standard deviation of the log of a night's step time around the series' level."""
    changes: tuple[NightChange, ...] = ()
    """What changed in the environment since the last night before the change; empty: nothing that is recorded."""
    confirmation_run_id: Name | None = None
    """The run that measures `cell_ids` again. null: none is needed, as for a change to the better."""
    confirmation_repeats: Number = 0


class Decision(StoredDocument):
    """What became of a Suspicion. It is written once and stays."""

    matrix: Name
    change_id: Name
    outcome: Outcome
    reason: str
    """One line."""
    night_run_id: Name
    confirmation_run_id: Name | None = None
    num_repeats: Number = 0
    """Repeats of the confirmation that counted."""
    shift: Shift | None = None
    """With the repeats of the confirmation. null: there were none."""
    decided_at: Time


class Notice(StoredDocument):
    """A mark that an alarm was sent to one place, so that it is not sent there again."""

    matrix: Name
    change_id: Name
    channel: Name
    """Where it was sent: a name without anything secret."""
    sent_at: Time


class AlarmedChange(Document):
    """A confirmed regression as an Alarm tells it."""

    change_id: Name
    cell_ids: tuple[CellId, ...]
    num_cells: Count
    metric: WatchedMetric = "step-time"
    hardware: str
    since_run_id: Name
    """The first run after the change."""
    shift: Shift
    reason: str
    changes: tuple[NightChange, ...]
    confirmation_run_id: Name | None


class Alarm(VersionedDocument):
    """The body of a webhook: the regressions that one night confirmed."""

    kind: Literal["benchmatrix.regression"] = "benchmatrix.regression"
    alarm_id: Name
    """8 hex digits, equal for equal regressions: an alarm that comes twice has the same."""
    matrix: Name
    night_run_id: Name
    report: str
    """Where the report of the night is in the store."""
    regressions: tuple[AlarmedChange, ...]

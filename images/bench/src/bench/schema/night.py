"""The documents of `benchmatrix watch`: a suspected change of a cell over nights, its decision, and a sent notice."""

from typing import Annotated, Literal

from pydantic import Field

from bench.registry import Device
from bench.schema.document import (
    CellId,
    Count,
    Document,
    Name,
    Number,
    PositiveAmount,
    StoredDocument,
    Time,
    VersionedDocument,
)

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

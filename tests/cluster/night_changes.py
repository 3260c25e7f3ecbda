"""A confirmed regression, as a night that was followed leaves it."""

from datetime import UTC, datetime

from bench.schema import NightChange, Shift, Suspicion
from collector.nights.records import RecordedChange
from factories import make_cell


def make_change() -> RecordedChange:
    """Return a slower cell of the night `night-2`."""
    return RecordedChange(
        suspicion=Suspicion(
            matrix="nightly",
            change_id="1a2b3c4d",
            direction="slower",
            cell_ids=(make_cell().cell_id,),
            num_cells=1,
            device="cpu",
            hardware="a CPU",
            night_run_id="night-2",
            first_run_id="night-2",
            seen_at=datetime(2026, 3, 1, tzinfo=UTC),
            shift=Shift(ratio=1.05, low=1.03, high=1.07, p_value=1e-6, num_nights_before=9, num_nights_after=1),
            night_deviation=0.01,
            changes=(NightChange(what="image", before="x" * 900, after="y" * 900),),
        )
    )

"""Put the report of a finished run into the store: beside the run's results, and under `latest/`.

Pages and dashboards point at `latest/`; it changes once per run, after everything else is written.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from bench.schema import Ending, InvalidDocumentError, MissingRepeat, Run, read_run, read_time_of_day
from bench.store import LATEST_REPORT_KEY, LATEST_RUN_KEY, KeyMissing, Store, report_key
from collector.results.frames import WITHOUT_RECORD


class RepeatState(NamedTuple):
    """A planned repeat and the status of its newest record, `missing` where it has none, `unreadable` where it has one
    that the store does not give."""

    cell_id: str
    repeat: int
    status: str


def describe_ending(states: Iterable[RepeatState]) -> Ending:
    """Return how far a run is, from one state for each planned repeat."""
    states = list(states)
    return Ending(
        published_at=read_time_of_day(),
        num_repeats=dict(Counter(state.status for state in states)),
        missing=tuple(
            MissingRepeat(cell_id=state.cell_id, repeat=state.repeat)
            for state in states
            if state.status in WITHOUT_RECORD
        ),
    )


def publish_report(store: Store, run: Run, report: bytes, ending: Ending) -> list[str]:
    """Put the report beside the run and under `latest/`; return the keys that were written, in their order.

    `latest/run.json` is written last: it names the run that `latest/report.html` is of. If `latest/` holds a newer run
    already, it is not changed. Two runs that end within the same moment can leave the report of one under the name of
    the other: `runs/RUN_ID/report.html` of the run that is named is certain.

    Raise StoreError if the store cannot be used.
    """
    store.put(report_key(run.run_id), report)
    written = [report_key(run.run_id)]
    document = run.model_copy(update={"ending": ending}).to_json()
    for key, data in ((LATEST_REPORT_KEY, report), (LATEST_RUN_KEY, document)):
        if _is_newer_there(store, run):  # before each: another run may end at the same time
            break
        store.put(key, data)
        written.append(key)
    return written


def _is_newer_there(store: Store, run: Run) -> bool:
    try:
        latest = read_run(store.get(LATEST_RUN_KEY))
    except (KeyMissing, InvalidDocumentError):  # none yet, or one of another version of this tool
        return False
    return latest.created_at > run.created_at

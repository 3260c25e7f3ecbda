"""The layout of the store: the key of every object, and what a key says about its object."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

from bench.schema import NodeFault, Placement, Result, hash_text

NAME = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
ATTEMPT_KEY = re.compile(
    rf"runs/(?P<run_id>{NAME})/(?P<folder>[a-z-]+)/(?P<cell_id>[a-z0-9-]{{1,54}}-[0-9a-f]{{8}})/"
    rf"(?P<repeat>[1-9][0-9]*)-(?P<attempt>{NAME})\.json"
)
CONFIRMATION_ID = re.compile(r"confirm-[0-9a-f]{8}")
CHANGE_KEY = re.compile(rf"nights/{NAME}/changes/({NAME})/([a-z0-9/-]+)\.json")
# Where to look for the newest run that is over: a copy of its report, and of its run.json with `ending`.
LATEST_REPORT_KEY = "latest/report.html"
LATEST_RUN_KEY = "latest/run.json"
# The data set, made from the documents: TABLE/RUN_ID/VERSION.ID.parquet below it.
TABLES_PREFIX = "tables"
# Refused in keys: what leaves the store, what file systems or S3 take for something else, and names like those of
# files that a directory's writer did not finish (`x.json#1`).
HOSTILE_PART = re.compile(r"|\.|\.\.|.*[\x00-\x1f\x7f\\].*|.*#[0-9]+", re.DOTALL)
# All documents but the plan describe one attempt, one change or one removal. A Result has 5 KB, with ten thousand
# steps 300 KB, with 250,000 and their times on the device 12 MB; the harness stops long before.
MAX_DOCUMENT_BYTES = 16 * 2**20


class ResultKey(NamedTuple):
    """The parts of a result's key, and of the keys of what lies beside it under the same name."""

    run_id: str
    cell_id: str
    repeat: int
    attempt: str

    @classmethod
    def of(cls, document: Result | Placement | NodeFault) -> "ResultKey":
        return cls(document.run_id, document.cell_id, document.repeat, document.attempt)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredObject:
    """One entry of a listing."""

    key: str
    num_bytes: int = 0
    version: str = ""
    """Differs between two objects of one key: the server's ETag; in a directory times and size."""
    modified_at: datetime | None = None
    """By the clock of the store; None where it knows no time and says 1970 or the year 1."""
    problem: str = ""
    """Why it cannot be read, in words: of links that lead nowhere. Empty: it can be."""


def check_name(name: str) -> str:
    """Return what is one part of a key; raise ValueError for what cannot be one. So do all that make keys."""
    if not re.fullmatch(NAME, name):
        raise ValueError(f"'{name}' is no run id")
    return name


def _fill(pattern: str, *names: str) -> str:
    return pattern.format(*map(check_name, names))


def _join_attempt(folder: str, run_id: str, cell_id: str, repeat: int, attempt: str) -> str:
    key = f"runs/{run_id}/{folder}/{cell_id}/{repeat}-{attempt}.json"
    if ATTEMPT_KEY.fullmatch(key) is None:
        raise ValueError(f"'{key}' is no key of a result")
    return key


def _parse_attempt(folder: str, key: str) -> ResultKey | None:
    """Return the parts of a key in this folder of a run; None for any other key."""
    match = ATTEMPT_KEY.fullmatch(key)
    if match is None or match["folder"] != folder:
        return None
    return ResultKey(match["run_id"], match["cell_id"], int(match["repeat"]), match["attempt"])


# Of a run, by its id; documents of which there are many have a name of their own.
run_key = partial(_fill, "runs/{}/run.json")
report_key = partial(_fill, "runs/{}/report.html")
results_prefix = partial(_fill, "runs/{}/results/")
placements_prefix = partial(_fill, "runs/{}/placements/")
node_faults_prefix = partial(_fill, "runs/{}/node-faults/")
cancelled_prefix = partial(_fill, "runs/{}/cancelled/")
cancelled_key = partial(_fill, "runs/{}/cancelled/{}.json")
raw_removals_prefix = partial(_fill, "runs/{}/raw-removals/")
raw_removal_key = partial(_fill, "runs/{}/raw-removals/{}.json")

# Of what is known of changes over a matrix's nights: by the matrix, the id of a change, and where a notice was sent.
changes_prefix = partial(_fill, "nights/{}/changes/")
suspicion_key = partial(_fill, "nights/{}/changes/{}/suspicion.json")
decision_key = partial(_fill, "nights/{}/changes/{}/decision.json")
notice_key = partial(_fill, "nights/{}/changes/{}/notices/{}.json")

# Of one attempt: its result, what it measured before it was interrupted, the pod it had, and why its node was left.
result_key = partial(_join_attempt, "results")
interrupted_key = partial(_join_attempt, "interrupted")
placement_key = partial(_join_attempt, "placements")
node_fault_key = partial(_join_attempt, "node-faults")
parse_result_key = partial(_parse_attempt, "results")
parse_placement_key = partial(_parse_attempt, "placements")


def meeting_prefix(run_id: str, cell_id: str, repeat: int, group: str) -> str:
    """Return the folder in which the tenants of one repeat meet; `group`: the id that all of them were given."""
    return _join_attempt("tenants", run_id, cell_id, repeat, group).removesuffix(".json") + "/"


def meeting_key(run_id: str, cell_id: str, repeat: int, group: str, document: str, tenant: int | None = None) -> str:
    """Return the key of a document of a meeting: `call` or `window`, or for one tenant `ready`, `pace` or `end`."""
    name = document if tenant is None else f"{document}-{tenant}"
    return f"{meeting_prefix(run_id, cell_id, repeat, group)}{check_name(name)}.json"


def confirmation_run_id(matrix: str, run_id: str) -> str:
    """Return the id of the run that measures again what is suspected in the run `run_id` of a matrix."""
    return f"confirm-{hash_text(f'{matrix}/{run_id}')}"


def is_confirmation(run_id: str) -> bool:
    """Return whether a run only measures again what another one made suspicious: it is nobody's newest run."""
    return CONFIRMATION_ID.fullmatch(run_id) is not None


def parse_change_key(key: str) -> tuple[str, str] | None:
    """Return the id of a change and the name of the document that a key is of; None for any other key."""
    match = CHANGE_KEY.fullmatch(key)
    return None if match is None else (match[1], match[2])


def find_key_problem(key: str) -> str:
    """Return in words why this can be no key of ours; empty where it can be one."""
    hostile = next((part for part in key.split("/") if HOSTILE_PART.fullmatch(part)), None)
    return "" if hostile is None else f"the part {hostile!r} is not allowed"

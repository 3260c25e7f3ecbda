"""The layout of the store: the key of every object, and what a key says about its object."""

import re
from dataclasses import dataclass

from bench.schema import hash_text

NAME = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
ATTEMPT_KEY = re.compile(
    rf"runs/(?P<run_id>{NAME})/(?P<kind>results|placements|node-faults)/(?P<cell_id>[a-z0-9-]{{1,54}}-[0-9a-f]{{8}})/"
    rf"(?P<repeat>[1-9][0-9]*)-(?P<attempt>{NAME})\.json"
)
CONFIRMATION_ID = re.compile(r"confirm-[0-9a-f]{8}")
CHANGE_KEY = re.compile(rf"nights/(?P<matrix>{NAME})/changes/(?P<change_id>{NAME})/(?P<document>[a-z0-9/-]+)\.json")
# Where to look for the newest run that is over: a copy of its report, and of its run.json with `ending`.
LATEST_REPORT_KEY = "latest/report.html"
LATEST_RUN_KEY = "latest/run.json"
# The data set, made from the documents: TABLE/RUN_ID/VERSION.ID.parquet below it.
TABLES_PREFIX = "tables"
# Refused in keys: what leaves the store, what file systems or S3 take for something else, and names like those of
# obstore's staging files (`x.json#1`).
HOSTILE_PART = re.compile(r"|\.|\.\.|.*[\x00-\x1f\x7f\\].*|.*#[0-9]+", re.DOTALL)
# What nearly all keys are: looked at as a whole, which takes a quarter of the time.
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


@dataclass(frozen=True, kw_only=True)
class ResultKey:
    """The parts of a result's key."""

    run_id: str
    cell_id: str
    repeat: int
    attempt: str


def run_key(run_id: str) -> str:
    """Return the key of the run's plan. This and all that follow raise ValueError for a part that is no name."""
    return f"{_run_prefix(run_id)}run.json"


def report_key(run_id: str) -> str:
    return f"{_run_prefix(run_id)}report.html"


def results_prefix(run_id: str) -> str:
    return f"{_run_prefix(run_id)}results/"


def placements_prefix(run_id: str) -> str:
    return f"{_run_prefix(run_id)}placements/"


def node_faults_prefix(run_id: str) -> str:
    return f"{_run_prefix(run_id)}node-faults/"


def tenants_prefix(run_id: str) -> str:
    return f"{_run_prefix(run_id)}tenants/"


def cancelled_prefix(run_id: str) -> str:
    return f"{_run_prefix(run_id)}cancelled/"


def raw_removals_prefix(run_id: str) -> str:
    return f"{_run_prefix(run_id)}raw-removals/"


def result_key(run_id: str, cell_id: str, repeat: int, attempt: str) -> str:
    key = f"runs/{run_id}/results/{cell_id}/{repeat}-{attempt}.json"
    if parse_result_key(key) is None:
        raise ValueError(f"'{key}' is no key of a result")
    return key


def interrupted_key(run_id: str, cell_id: str, repeat: int, attempt: str) -> str:
    """Return the key of what an attempt measured before it was interrupted: beside the results, for it is no end."""
    return result_key(run_id, cell_id, repeat, attempt).replace("/results/", "/interrupted/", 1)


def placement_key(run_id: str, cell_id: str, repeat: int, attempt: str) -> str:
    return result_key(run_id, cell_id, repeat, attempt).replace("/results/", "/placements/", 1)


def node_fault_key(run_id: str, cell_id: str, repeat: int, attempt: str) -> str:
    return result_key(run_id, cell_id, repeat, attempt).replace("/results/", "/node-faults/", 1)


def cancelled_key(run_id: str, cancellation: str) -> str:
    return f"{cancelled_prefix(run_id)}{_check_name(cancellation)}.json"


def raw_removal_key(run_id: str, removal: str) -> str:
    return f"{raw_removals_prefix(run_id)}{_check_name(removal)}.json"


def meeting_prefix(run_id: str, cell_id: str, repeat: int, group: str) -> str:
    """Return the folder in which the tenants of one repeat meet; `group`: the id that all of them were given."""
    return result_key(run_id, cell_id, repeat, group).replace("/results/", "/tenants/", 1).removesuffix(".json") + "/"


def meeting_key(run_id: str, cell_id: str, repeat: int, group: str, document: str, tenant: int | None = None) -> str:
    """Return the key of a document of a meeting: `call`, `window`, or of one tenant `ready`, `pace` and `end`."""
    name = document if tenant is None else f"{document}-{tenant}"
    return f"{meeting_prefix(run_id, cell_id, repeat, group)}{_check_name(name)}.json"


def confirmation_run_id(matrix: str, run_id: str) -> str:
    """Return the id of the run that measures again what is suspected in the run `run_id` of a matrix."""
    return f"confirm-{hash_text(f'{matrix}/{run_id}')}"


def is_confirmation(run_id: str) -> bool:
    """Return whether a run only measures again what another one made suspicious: it is nobody's newest run."""
    return CONFIRMATION_ID.fullmatch(run_id) is not None


def changes_prefix(matrix: str) -> str:
    """Return the folder of what is known of changes over a matrix's nights."""
    return f"nights/{_check_name(matrix)}/changes/"


def suspicion_key(matrix: str, change_id: str) -> str:
    return f"{changes_prefix(matrix)}{_check_name(change_id)}/suspicion.json"


def decision_key(matrix: str, change_id: str) -> str:
    """Return the key of what became of a suspected change."""
    return f"{changes_prefix(matrix)}{_check_name(change_id)}/decision.json"


def notice_key(matrix: str, change_id: str, channel: str) -> str:
    return f"{changes_prefix(matrix)}{_check_name(change_id)}/notices/{_check_name(channel)}.json"


def parse_change_key(key: str) -> tuple[str, str] | None:
    """Return the id of a change and the name of the document that a key is of; None for any other key."""
    match = CHANGE_KEY.fullmatch(key)
    return None if match is None else (match["change_id"], match["document"])


def parse_result_key(key: str) -> ResultKey | None:
    return _parse_attempt_key(key, "results")


def parse_placement_key(key: str) -> ResultKey | None:
    return _parse_attempt_key(key, "placements")


def parse_node_fault_key(key: str) -> ResultKey | None:
    return _parse_attempt_key(key, "node-faults")


def check_key(key: str) -> str:
    """Return the key; raise ValueError for one that could leave the store or be taken for another."""
    if problem := find_key_problem(key):
        raise ValueError(f"key {key!r}: {problem}")
    return key


def find_key_problem(key: str) -> str:
    """Return in words why this can be no key of ours; empty where it can be one."""
    if _PLAIN_KEY.fullmatch(key):
        return ""
    hostile = next((part for part in key.split("/") if HOSTILE_PART.fullmatch(part)), None)
    return "" if hostile is None else f"the part {hostile!r} is not allowed"


def _run_prefix(run_id: str) -> str:
    return f"runs/{_check_name(run_id)}/"


def _check_name(run_id: str) -> str:
    if not re.fullmatch(NAME, run_id):
        raise ValueError(f"'{run_id}' is no run id")
    return run_id


def _parse_attempt_key(key: str, kind: str) -> ResultKey | None:
    """Return the parts of a key of one attempt, which are those of its result; None for any other key."""
    match = ATTEMPT_KEY.fullmatch(key)
    if match is None or match["kind"] != kind:
        return None
    run_id, cell_id, attempt = match["run_id"], match["cell_id"], match["attempt"]
    return ResultKey(run_id=run_id, cell_id=cell_id, repeat=int(match["repeat"]), attempt=attempt)

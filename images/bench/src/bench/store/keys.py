"""The layout of the store: the key of every object, and what a key says about its object."""

import re
from dataclasses import dataclass

NAME = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_OF_ATTEMPT = rf"(?P<cell_id>[a-z0-9-]{{1,54}}-[0-9a-f]{{8}})/(?P<repeat>[1-9][0-9]*)-(?P<attempt>{NAME})\.json"
RESULT_KEY = re.compile(rf"runs/(?P<run_id>{NAME})/results/{_OF_ATTEMPT}")
PLACEMENT_KEY = re.compile(rf"runs/(?P<run_id>{NAME})/placements/{_OF_ATTEMPT}")
NODE_FAULT_KEY = re.compile(rf"runs/(?P<run_id>{NAME})/node-faults/{_OF_ATTEMPT}")
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
    """Return the key of the run's plan; ValueError where `run_id` is none."""
    return f"runs/{_check_name(run_id)}/run.json"


def results_prefix(run_id: str) -> str:
    """Return the folder of the run's results; ValueError where `run_id` is none."""
    return f"runs/{_check_name(run_id)}/results/"


def result_key(run_id: str, cell_id: str, repeat: int, attempt: str) -> str:
    """Return the key of one attempt's result; ValueError where a part is not what the schema allows."""
    key = f"runs/{run_id}/results/{cell_id}/{repeat}-{attempt}.json"
    if parse_result_key(key) is None:
        raise ValueError(f"'{key}' is no key of a result")
    return key


def report_key(run_id: str) -> str:
    """Return the key of the run's report; ValueError where `run_id` is none."""
    return f"runs/{_check_name(run_id)}/report.html"


def interrupted_key(run_id: str, cell_id: str, repeat: int, attempt: str) -> str:
    """Return the key of what an attempt measured before it was interrupted: beside the results, for it is no end."""
    return result_key(run_id, cell_id, repeat, attempt).replace("/results/", "/interrupted/", 1)


def placements_prefix(run_id: str) -> str:
    """Return the folder of the run's placements; ValueError where `run_id` is none."""
    return f"runs/{_check_name(run_id)}/placements/"


def placement_key(run_id: str, cell_id: str, repeat: int, attempt: str) -> str:
    """Return the key of where one attempt ran; ValueError where a part is not what the schema allows."""
    return result_key(run_id, cell_id, repeat, attempt).replace("/results/", "/placements/", 1)


def parse_placement_key(key: str) -> ResultKey | None:
    """Return the parts of a placement's key, which are those of its attempt's result; None for any other key."""
    return _parse(PLACEMENT_KEY, key)


def node_faults_prefix(run_id: str) -> str:
    """Return the folder of the run's node faults; ValueError where `run_id` is none."""
    return f"runs/{_check_name(run_id)}/node-faults/"


def node_fault_key(run_id: str, cell_id: str, repeat: int, attempt: str) -> str:
    """Return the key of what a node did to one attempt; ValueError where a part is not what the schema allows."""
    return result_key(run_id, cell_id, repeat, attempt).replace("/results/", "/node-faults/", 1)


def parse_node_fault_key(key: str) -> ResultKey | None:
    """Return the parts of a node fault's key, which are those of its attempt; None for any other key."""
    return _parse(NODE_FAULT_KEY, key)


def cancelled_prefix(run_id: str) -> str:
    """Return the folder of the run's marks of cancellation; ValueError where `run_id` is none."""
    return f"runs/{_check_name(run_id)}/cancelled/"


def cancelled_key(run_id: str, cancellation: str) -> str:
    """Return the key of the mark that one cancellation of the run leaves; ValueError where a part is no name."""
    return f"{cancelled_prefix(run_id)}{_check_name(cancellation)}.json"


def raw_removals_prefix(run_id: str) -> str:
    """Return the folder of what says which raw results of the run were removed; ValueError where `run_id` is none."""
    return f"runs/{_check_name(run_id)}/raw-removals/"


def raw_removal_key(run_id: str, removal: str) -> str:
    """Return the key of what says which raw results one removal took; ValueError where a part is no name."""
    return f"{raw_removals_prefix(run_id)}{_check_name(removal)}.json"


def tenants_prefix(run_id: str) -> str:
    """Return the folder of the meetings of the run's tenants; ValueError where `run_id` is none."""
    return f"runs/{_check_name(run_id)}/tenants/"


def meeting_prefix(run_id: str, cell_id: str, repeat: int, group: str) -> str:
    """Return the folder in which the tenants of one repeat meet; ValueError where a part is not what the schema allows.

    `group`: the id that all of them were given.
    """
    return result_key(run_id, cell_id, repeat, group).replace("/results/", "/tenants/", 1).removesuffix(".json") + "/"


def meeting_key(run_id: str, cell_id: str, repeat: int, group: str, document: str, tenant: int | None = None) -> str:
    """Return the key of a document of a meeting: `call`, `window`, or of one tenant `ready`, `pace` and `end`."""
    name = document if tenant is None else f"{document}-{tenant}"
    return f"{meeting_prefix(run_id, cell_id, repeat, group)}{_check_name(name)}.json"


def confirmation_run_id(digits: str) -> str:
    """Return the id of a run that measures again what a night made suspicious; `digits`: 8 hex digits of the night."""
    return f"confirm-{digits}"


def is_confirmation(run_id: str) -> bool:
    """Return whether a run only measures again what another one made suspicious: it is nobody's newest run."""
    return CONFIRMATION_ID.fullmatch(run_id) is not None


def changes_prefix(matrix: str) -> str:
    """Return the folder of what is known of changes over a matrix's nights; ValueError where `matrix` is no name."""
    return f"nights/{_check_name(matrix)}/changes/"


def suspicion_key(matrix: str, change_id: str) -> str:
    """Return the key of a change that was suspected; ValueError where a part is no name."""
    return f"{changes_prefix(matrix)}{_check_name(change_id)}/suspicion.json"


def decision_key(matrix: str, change_id: str) -> str:
    """Return the key of what became of a suspected change; ValueError where a part is no name."""
    return f"{changes_prefix(matrix)}{_check_name(change_id)}/decision.json"


def notice_key(matrix: str, change_id: str, channel: str) -> str:
    """Return the key of the mark that a change was announced in a channel; ValueError where a part is no name."""
    return f"{changes_prefix(matrix)}{_check_name(change_id)}/notices/{_check_name(channel)}.json"


def parse_change_key(key: str) -> tuple[str, str] | None:
    """Return the id of a change and the name of the document that a key is of; None for any other key."""
    match = CHANGE_KEY.fullmatch(key)
    return None if match is None else (match["change_id"], match["document"])


def parse_result_key(key: str) -> ResultKey | None:
    """Return the parts of a result's key; None for any other key."""
    return _parse(RESULT_KEY, key)


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


def _check_name(run_id: str) -> str:
    if not re.fullmatch(NAME, run_id):
        raise ValueError(f"'{run_id}' is no run id")
    return run_id


def _parse(pattern: re.Pattern[str], key: str) -> ResultKey | None:
    match = pattern.fullmatch(key)
    if match is None:
        return None
    run_id, cell_id, repeat, attempt = match.groups()
    return ResultKey(run_id=run_id, cell_id=cell_id, repeat=int(repeat), attempt=attempt)

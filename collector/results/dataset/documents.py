"""Turn the JSON documents of a run into rows of the data set, each checked against the key that it was found under."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.schema import (
    Environment,
    Framework,
    InvalidDocumentError,
    NodeFault,
    Placement,
    Result,
    hash_text,
    read_node_fault,
    read_placement,
    read_result,
)
from bench.store import (
    ResultKey,
    node_faults_prefix,
    parse_node_fault_key,
    parse_placement_key,
    parse_result_key,
    placements_prefix,
    results_prefix,
)
from collector.results.cells import describe_cell
from collector.results.dataset.columns import ATTEMPTS, ENVIRONMENTS, NODE_FAULTS, PLACEMENTS, STEPS, TENANTS
from collector.results.frames import (
    PLACEMENT_COLUMNS,
    describe_environment,
    describe_result,
    describe_tenants,
    list_series,
)

Row = dict[str, Any]
Rows = dict[str, list[Row]]
"""By table: those of one document."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of document: where a run has them, and which rows they become."""

    tables: tuple[str, ...]
    """The first has a row for each document."""
    find_prefix: Callable[[str], str]
    parse_key: Callable[[str], ResultKey | None]
    describe: Callable[[bytes, ResultKey], Rows]
    """Raises InvalidDocumentError."""
    noun: str

    @property
    def table(self) -> str:
        """The table that names each document."""
        return self.tables[0]


class EnvironmentRows:
    """Describes environments once each: most results of a run share theirs."""

    def __init__(self) -> None:
        self._columns: dict[tuple[str, Framework], Row] = {}
        self._documents: dict[str, Row] = {}

    def describe(self, environment: Environment, framework: Framework) -> tuple[Row, Row]:
        """Return the columns of a result in the environment, and the row of the environment's own table."""
        text = environment.model_dump_json()
        if (text, framework) not in self._columns:
            columns = describe_environment(environment, framework)
            facts = {"environment_document": hash_text(text), "image": environment.image}
            facts |= {"git_revision": environment.git_revision}
            self._columns[text, framework] = columns | facts | {"num_visible_cores": environment.num_visible_cores}
            names = ("environment_id", "hostname")
            self._documents[text] = {name: columns[name] for name in names} | facts | {"document": text}
        return self._columns[text, framework], self._documents[text]


def describe_attempt(data: bytes, key: ResultKey, environments: EnvironmentRows) -> Rows:
    """Return the rows of one result.

    Raises InvalidDocumentError where it is damaged or another's than its key says.
    """
    result = read_result(data)
    for name in ("run_id", "cell_id", "repeat", "attempt"):
        held, expected = getattr(result, name), getattr(key, name)
        if held != expected:
            raise InvalidDocumentError(f"{name} is '{held}' inside, '{expected}' in its key")
    identity = {"run_id": result.run_id, "cell_id": result.cell_id, "repeat": result.repeat, "attempt": result.attempt}
    attempt = identity | describe_cell(result.cell) | describe_result(result) | _describe_host_peak(result)
    rows: Rows = {
        ATTEMPTS: [attempt],
        TENANTS: [identity | row for row in describe_tenants(result)],
        STEPS: [identity | row for row in list_series(result)],
    }
    if result.environment is not None:
        columns, document = environments.describe(result.environment, result.cell.framework)
        attempt |= columns
        rows[ENVIRONMENTS] = [document]
    return rows


def _describe_host_peak(result: Result) -> Row:
    row: Row = {}
    if result.host_peak is not None:
        row["host_framework"] = result.host_peak.framework
        row["host_theoretical_flops_per_second"] = result.host_peak.theoretical_flops_per_second
    return row


def _describe_placement(data: bytes, key: ResultKey) -> Rows:
    placement = read_placement(data)
    row = _check_attempt(placement, key, "placement")
    row |= placement.model_dump(include={"node_name", "image_id", "qos_class", "cpu_request_cores"})
    row["other_containers"] = ", ".join(placement.other_containers) or None
    if placement.node is not None:
        row |= placement.node.model_dump(include={*PLACEMENT_COLUMNS, "num_cpus"})
    return {PLACEMENTS: [row]}


def _describe_node_fault(data: bytes, key: ResultKey) -> Rows:
    fault = read_node_fault(data)
    return {NODE_FAULTS: [_check_attempt(fault, key, "node fault") | {"document": fault.model_dump_json()}]}


def _check_attempt(document: Placement | NodeFault, key: ResultKey, noun: str) -> Row:
    row = document.model_dump(include={"run_id", "cell_id", "repeat", "attempt"})
    if ResultKey(**row) != key:
        raise InvalidDocumentError(f"the {noun} is of another attempt than its key says")
    return row


def make_result_kind() -> Kind:
    """Return the kind of a run's results; environments are remembered for as long as it is used."""
    environments = EnvironmentRows()
    return Kind(
        tables=(ATTEMPTS, STEPS, ENVIRONMENTS, TENANTS),
        find_prefix=results_prefix,
        parse_key=parse_result_key,
        describe=lambda data, key: describe_attempt(data, key, environments),
        noun="result",
    )


PLACEMENT_KIND = Kind(
    tables=(PLACEMENTS,),
    find_prefix=placements_prefix,
    parse_key=parse_placement_key,
    describe=_describe_placement,
    noun="placement",
)
NODE_FAULT_KIND = Kind(
    tables=(NODE_FAULTS,),
    find_prefix=node_faults_prefix,
    parse_key=parse_node_fault_key,
    describe=_describe_node_fault,
    noun="node fault",
)

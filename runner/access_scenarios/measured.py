"""Read the speed of a kind of GPU from a run in a store."""

from typing import Any

from bench.errors import UserError
from bench.store import Store
from collector.access.choices import KindFigures
from collector.access.scenario import Kind, Measured
from collector.labels import add_labels
from collector.results.frames import list_rows
from collector.results.load import load_run
from collector.results.summary import summarize_cells
from collector.versus.selections import parse_condition
from runner.access_scenarios.slowdowns import state_slowdowns
from runner.yaml_files.errors import ErrorKind
from runner.yaml_files.node import Node
from runner.yaml_files.wording import join_words

MAX_LISTED = 8


def read_measured_kind(kind: Kind, node: Node) -> KindFigures:
    """Return the figures of a kind whose speed is that of a cell of a run; YamlError if no or several cells fit.

    `node`: that of the kind in the scenario.
    """
    measured = kind.measured
    assert measured is not None
    cell = _find_cell(measured, node.find_nearest("measured"))
    count = "1 repeat" if cell["num_counted"] == 1 else f"{cell['num_counted']} repeats"
    return KindFigures(
        samples_per_second=float(cell["throughput_samples_per_s"]),
        origin="measured",
        source=f"{cell['label']}, {cell['gpu_name'] or 'no GPU'}, run {measured.run}, {count}",
        slowdowns=state_slowdowns(kind),
    )


def _find_cell(measured: Measured, node: Node) -> dict[str, Any]:
    conditions = []
    for index, text in enumerate(measured.where):
        place = node.find_nearest(f"where[{index}]")
        try:
            conditions.append(parse_condition(text, "where"))
        except UserError as error:
            raise place.error(ErrorKind.WRONG_FORMAT, str(error).removeprefix(f"where {text}: ")) from None
    try:
        summary = add_labels(summarize_cells(load_run(Store.open(measured.store), measured.run)))
    except UserError as error:
        raise node.error(ErrorKind.NOT_FOUND, str(error)) from None
    rows = [row for row in list_rows(summary) if row["num_sound"] > 0]
    known = [condition for condition in conditions if condition.column in summary]
    found = [row for row in rows if all(condition.holds(row) for condition in known)]
    if len(found) != 1:
        names = join_words(row["label"] for row in (found or rows)[:MAX_LISTED])
        if not rows:
            problem = "no cell was measured under sound conditions"
        elif not found:
            problem = f"no cell fits all of it; measured under sound conditions are {names}"
        else:
            problem = f"{len(found)} cells fit: {names}; add conditions until one is left, such as `phase=train`"
        raise node.find_nearest("where").error(ErrorKind.NOT_FOUND, f"run {measured.run}: {problem}")
    return dict(found[0])

"""Read the speed of a kind of GPU and its slowdowns by tenants from a run in a store."""

from collections.abc import Mapping
from typing import Any

from bench.errors import UserError
from bench.store import Store
from collector.access.choices import KindFigures, Slowdowns
from collector.access.scenario import Kind, Measured, Sharing
from collector.labels import add_labels
from collector.results.cells import select_alone
from collector.results.collection import Collection
from collector.results.frames import list_rows
from collector.results.load import load_run
from collector.results.summary import summarize_cells
from collector.sharing.tabulate import tabulate_sharing
from collector.versus.selections import KEYS, Condition, parse_condition
from runner.access_scenarios.slowdowns import state_slowdowns
from runner.yaml_files.errors import ErrorKind
from runner.yaml_files.node import Node
from runner.yaml_files.wording import join_words

MAX_LISTED = 8
WAYS: tuple[Sharing, ...] = ("time-slicing", "mps")


def read_measured_kind(kind: Kind, node: Node) -> KindFigures:
    """Return the figures of a kind whose speed is that of a cell of a run; YamlError if no or several cells fit.

    The speed is that over the whole window: a job of hours has every hiccup. `node`: that of the kind in the scenario.
    Slowdowns are those of cells of the run whose tenants did the same work; what the scenario states itself of a way of
    sharing holds instead.
    """
    measured = kind.measured
    assert measured is not None
    place = node.find_nearest("measured")
    conditions = _parse_conditions(measured, place)
    try:
        collection = load_run(Store.open(measured.store, makes_directory=False), measured.run)
    except UserError as error:
        raise place.error(ErrorKind.NOT_FOUND, str(error)) from None
    cell = _find_cell(measured, collection, conditions, place)
    count = "1 repeat" if cell["num_counted"] == 1 else f"{cell['num_counted']} repeats"
    gpu = cell["gpu_name"] if isinstance(cell["gpu_name"], str) else "no GPU"
    source = f"{cell['label']}, {gpu}, run {measured.run}"
    return KindFigures(
        samples_per_second=float(cell["window_samples_per_s"]),
        origin="measured",
        source=f"{source}, {count}",
        slowdowns={**read_slowdowns(collection, cell, source), **state_slowdowns(kind)},
    )


def _parse_conditions(measured: Measured, node: Node) -> list[Condition]:
    conditions = []
    for index, text in enumerate(measured.where):
        try:
            conditions.append(parse_condition(text, "where"))
        except UserError as error:
            message = str(error).removeprefix(f"where {text}: ")
            raise node.find_nearest(f"where[{index}]").error(ErrorKind.WRONG_FORMAT, message) from None
    return conditions


def _find_cell(measured: Measured, collection: Collection, conditions: list[Condition], node: Node) -> dict[str, Any]:
    """Return the row of the one cell alone, measured under sound conditions, for which the conditions hold."""
    summary = add_labels(select_alone(summarize_cells(collection)))
    rows = [row for row in list_rows(summary) if row["num_sound"] > 0]
    for index, condition in enumerate(conditions):
        if condition.column not in summary:  # of repeats: a cell may have run on several hosts
            known = ", ".join(key for key, column in KEYS.items() if column in summary)
            message = f"'{condition.key}' does not choose a cell, since its repeats may differ in it; give {known}"
            raise node.find_nearest(f"where[{index}]").error(ErrorKind.NOT_A_CHOICE, message)
    found = [row for row in rows if all(condition.holds(row) for condition in conditions)]
    if len(found) == 1:
        return dict(found[0])
    names = join_words(row["label"] for row in (found or rows)[:MAX_LISTED])
    if not rows:
        problem = "no cell alone was measured under sound conditions"
    elif not found:
        problem = f"no cell fits all of it; alone and under sound conditions were measured {names}"
    else:
        problem = f"{len(found)} cells fit: {names}; add conditions until one is left, such as `phase=train`"
    raise node.find_nearest("where").error(ErrorKind.NOT_FOUND, f"run {measured.run}: {problem}")


def read_slowdowns(collection: Collection, cell: Mapping[str, Any], source: str) -> dict[Sharing, Slowdowns]:
    """Return the slowdowns of the run's cells whose tenants all did the work of `cell`, by way of sharing.

    `cell`: the row of a cell alone, which they are held against.
    """
    table = tabulate_sharing(collection)
    is_alike = (table["alone_cell_id"] == cell["cell_id"]) & (table["role"] == "cell") & table["neighbour"].isna()
    rows = list_rows(table[is_alike & (table["tenants"] > 1) & table["slowdown"].notna()])
    found: dict[Sharing, Slowdowns] = {}
    for sharing in WAYS:
        by_tenants = {int(row["tenants"]): float(row["slowdown"]) for row in rows if row["sharing"] == sharing}
        if by_tenants:
            found[sharing] = Slowdowns(by_tenants=by_tenants, origin="measured", source=source)
    return found

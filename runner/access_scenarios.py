"""Load a scenario of access to GPUs, and look up the speeds, slowdowns and prices that it names.

Whatever is wrong becomes one error with file, line and key.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from bench.errors import UserError
from collector.access.outcomes import HourlyPrice, KindFigures, compute_offered_hours
from collector.access.scenario import (
    MAX_WEEKS,
    MIN_WEEKS,
    SCENARIOS,
    Alternative,
    Group,
    Kind,
    Measured,
    Scenario,
    Sharing,
)
from collector.access.simulation import WorkingTime
from collector.prices.table import PriceTable, find_gpu_offers, find_machine_offers
from runner.price_tables import load_prices
from runner.yaml_input import Node, NodeValidator, join_words, read_yaml, suggest_word

if TYPE_CHECKING:  # pandas takes a second to import: only what reads a run does it
    from collector.results.collection import Collection

EXPECTED = "a scenario; give it the keys 'question', 'job_hours_on', 'kinds', 'users' and 'alternatives'"
MAX_JOBS = 2_000_000
"""In all simulated weeks: at 0.1 ms each, on a core of an AMD EPYC, three minutes; more is a slip of a digit."""
MAX_LISTED = 8
_VALIDATOR = NodeValidator(TypeAdapter(Scenario), documentation="docs/access.md")


def list_shipped_scenarios() -> dict[str, Path]:
    """Return the scenarios that come with the tool, with their files."""
    return {path.stem: path for path in sorted(SCENARIOS.glob("*.yaml"))}


def load_scenario(name: str, *, weeks: int | None = None) -> tuple[Scenario, Node]:
    """Return a shipped scenario or a YAML file's, with its tree; UserError with file, line and key if it is wrong.

    The tree says where a value stands, for errors that come to light only when figures and prices are looked up.
    `weeks` replaces those of the scenario.
    """
    shipped = list_shipped_scenarios()
    if name not in shipped and Path(name).suffix not in (".yaml", ".yml") and not os.path.isdir(name):
        raise UserError(
            f"{name}: is no scenario; {suggest_word(name, list(shipped))}, or give the path of a .yaml file"
        )
    path = shipped.get(name, Path(name))
    tree = read_yaml(path, path.name if name in shipped else name, expected=EXPECTED)
    scenario = _VALIDATOR.validate(tree)
    if weeks is not None:
        if not MIN_WEEKS <= weeks <= MAX_WEEKS:
            raise UserError(f"--weeks {weeks}: expected {MIN_WEEKS} to {MAX_WEEKS}")
        scenario = scenario.model_copy(update={"weeks": weeks})
    num_jobs = estimate_num_jobs(scenario)
    if num_jobs > MAX_JOBS:
        message = (
            f"about {num_jobs:,.0f} jobs would be simulated, more than {MAX_JOBS:,}; lower weeks, warm_up_weeks or the "
            "number of users, jobs, alternatives or policies"
        )
        raise tree.find_nearest("weeks").error(message, key="weeks")
    return scenario, tree


def estimate_num_jobs(scenario: Scenario) -> float:
    """Return about how many jobs are submitted in all weeks, warm-ups included, of all choices together."""

    def count_per_week(group: Group) -> float:
        offered = compute_offered_hours(group)
        if offered is not None:
            return offered * len(group.job_hours) / sum(group.job_hours)
        # As if jobs took no time: the most that can be.
        return group.number * WorkingTime(group).hours_per_week / (group.think_hours or 1.0)

    weeks = scenario.weeks * (1 + scenario.warm_up_weeks)
    return weeks * sum(map(count_per_week, scenario.users)) * len(scenario.alternatives) * len(scenario.policies)


def look_up_figures(scenario: Scenario, tree: Node) -> dict[str, KindFigures]:
    """Return the figures of every kind by its name; YamlError, at its place in `tree`, where they cannot be had."""
    kinds, found = tree.find_nearest("kinds"), {}
    for name, kind in scenario.kinds.items():
        if kind.measured is not None:
            found[name] = _read_measured(kind, kind.measured, kinds.find_child(name) or kinds)
        else:
            assert kind.samples_per_second is not None  # the scenario checks it
            found[name] = KindFigures(kind.samples_per_second, _drop_empty(kind.slowdowns))
    return found


def _drop_empty(slowdowns: Mapping[Sharing, dict[int, float]]) -> dict[Sharing, dict[int, float]]:
    return {sharing: by_tenants for sharing, by_tenants in slowdowns.items() if by_tenants}


def _read_measured(kind: Kind, measured: Measured, node: Node) -> KindFigures:
    """Return the figures of a kind whose speed is that of a cell of a run; YamlError if no or several cells fit.

    The speed is that over the whole window: a job of hours has every hiccup. Slowdowns are those of cells of the run
    whose tenants did the same work; what the scenario states itself of a way of sharing holds instead.
    """
    from bench.store import Store
    from collector.results.load import load_run

    place = node.find_nearest("measured")
    try:
        collection = load_run(Store.open(measured.store), measured.run)
    except UserError as error:
        raise place.error(str(error)) from None
    cell = _find_cell(measured, collection, place)
    count = "1 repeat" if cell["num_counted"] == 1 else f"{cell['num_counted']} repeats"
    gpu = cell["gpu_name"] if isinstance(cell["gpu_name"], str) else "no GPU"
    slowdowns = _read_slowdowns(collection, cell) | _drop_empty(kind.slowdowns)
    source = f"measured: {cell['label']}, {gpu}, run {measured.run}, {count}"
    return KindFigures(float(cell["window_samples_per_s"]), slowdowns, source)


def _find_cell(measured: Measured, collection: "Collection", node: Node) -> dict[str, Any]:
    """Return the row of the one cell alone, measured under sound conditions, for which the conditions hold."""
    from collector.labels import add_labels
    from collector.results.frames import list_rows, select_alone
    from collector.results.summary import summarize_cells
    from collector.versus.question import KEYS, parse_condition

    summary = add_labels(select_alone(summarize_cells(collection)))
    rows = found = [row for row in list_rows(summary) if row["num_sound"] > 0]
    for index, text in enumerate(measured.where):
        place = node.find_nearest(f"where[{index}]")
        try:
            condition = parse_condition(text, "where")
        except UserError as error:
            message = str(error).removeprefix(f"where {text}: ")
            raise place.error(message) from None
        if condition.column not in summary:  # of repeats: a cell may have run on several hosts
            known = ", ".join(key for key, column in KEYS.items() if column in summary)
            message = f"'{condition.key}' does not choose a cell, since its repeats may differ in it; give {known}"
            raise place.error(message)
        found = [row for row in found if condition.holds(row)]
    if len(found) == 1:
        return dict(found[0])
    names = join_words(row["label"] for row in (found or rows)[:MAX_LISTED])
    if not rows:
        problem = "no cell alone was measured under sound conditions"
    elif not found:
        problem = f"no cell fits all of it; alone and under sound conditions were measured {names}"
    else:
        problem = f"{len(found)} cells fit: {names}; add conditions until one is left, such as `phase=train`"
    raise node.find_nearest("where").error(f"run {measured.run}: {problem}")


def _read_slowdowns(collection: "Collection", cell: dict[str, Any]) -> dict[Sharing, dict[int, float]]:
    """Return the slowdowns of the run's cells whose tenants all did the work of `cell`, which was alone."""
    from collector.results.frames import list_rows
    from collector.sharing import tabulate_sharing

    table = tabulate_sharing(collection)
    is_alike = (table["alone_cell_id"] == cell["cell_id"]) & (table["role"] == "cell") & table["neighbour"].isna()
    found: dict[Sharing, dict[int, float]] = {}
    for row in list_rows(table[is_alike & (table["tenants"] > 1) & table["slowdown"].notna()]):
        found.setdefault(row["sharing"], {})[int(row["tenants"])] = float(row["slowdown"])
    return found


def look_up_prices(scenario: Scenario, tree: Node) -> dict[str, HourlyPrice]:
    """Return the price of an hour of one GPU, by the name of each rented alternative.

    YamlError, at its place in `tree`, where the price table has none. A path of a table is taken from the directory of
    the scenario's file.
    """
    table, prices = None, {}
    for place, alternative in enumerate(scenario.alternatives):
        if alternative.rent is None:
            continue
        if alternative.rent.price_per_hour is not None:
            prices[alternative.name] = HourlyPrice(alternative.rent.price_per_hour)
            continue
        if table is None:
            table = load_prices(None if scenario.prices is None else Path(tree.file).parent / scenario.prices)
        if table.currency != scenario.currency:
            message = (
                f"found {scenario.currency}, and the price table is in {table.currency}; state prices, or use its "
                "currency"
            )
            raise tree.find_nearest("currency").error(message, key="currency")
        node = tree.find_nearest(f"alternatives[{place}].rent")
        prices[alternative.name] = _find_price(table, alternative, node)
    return prices


def _find_price(table: PriceTable, alternative: Alternative, node: Node) -> HourlyPrice:
    rent = alternative.rent
    assert rent is not None
    purchase = "spot" if rent.spot else "on-demand"
    if rent.machine is not None:
        what = f"machine {rent.machine}" + (f" in {rent.region}" if rent.region is not None else "")
        rows = [row for row in find_machine_offers(table, rent.machine, rent.region) if row.gpu is not None]
    else:
        what, rows = f"GPU {alternative.kind}", list(find_gpu_offers(table, alternative.kind))
    offers = [row for row in rows if row.purchase == purchase]
    if not offers:
        gpus = sorted({row.gpu for row in table.prices if row.gpu is not None and row.purchase == purchase})
        message = (
            f"the price table has no {purchase} price of the {what}; give price_per_hour, or a kind or machine that it "
            f"has; its GPUs are {join_words(gpus)}"
        )
        raise node.error(message)
    row = min(offers, key=lambda row: row.compute_hourly_price(1))
    part = f", one of its {row.gpus_per_machine} GPUs" if row.gpus_per_machine > 1 else ""
    return HourlyPrice(row.compute_hourly_price(1), f"{row.place}{part}, {row.date}, {row.source}")

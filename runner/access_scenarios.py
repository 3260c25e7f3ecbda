"""Load a scenario of access to GPUs with the prices that it leaves to the price table.

Whatever is wrong becomes one error with file, line and key.
"""

from pathlib import Path

from pydantic import TypeAdapter

import collector.access
from bench.errors import UserError
from collector.access.scenario import Alternative, Scenario
from collector.prices.table import PriceTable, find_gpu_offers, find_machine_offers
from runner.price_tables import load_prices
from runner.yaml_input import Node, join_words, read_yaml, suggest_word, validate

EXPECTED = "a scenario; give it the keys 'question', 'job_hours_on', 'kinds', 'users' and 'alternatives'"
SHIPPED = {path.stem: path for path in sorted(Path(collector.access.__path__[0]).glob("scenarios/*.yaml"))}
_ADAPTER = TypeAdapter(Scenario)


def load_scenario(name: str) -> Scenario:
    """Return a shipped scenario or a YAML file's, with a price for all that is rented."""
    if name not in SHIPPED and Path(name).suffix not in (".yaml", ".yml") and not Path(name).is_dir():
        raise UserError(
            f"{name}: is no scenario; {suggest_word(name, list(SHIPPED))}, or give the path of a .yaml file"
        )
    path = SHIPPED.get(name, Path(name))
    tree = read_yaml(path, path.name if name in SHIPPED else name, expected=EXPECTED)
    scenario = validate(tree, _ADAPTER, "docs/access.md")
    table, alternatives = load_prices(), dict(scenario.alternatives)
    for key, alternative in scenario.alternatives.items():
        if alternative.rent is not None and alternative.rent.price_per_hour is None:
            if table.currency != scenario.currency:
                message = f"found {scenario.currency}, and the price table is in {table.currency}; state all prices"
                raise tree.find_nearest("currency").error(message, key="currency")
            alternatives[key] = _look_up(alternative, table, tree.find_nearest(f"alternatives.{key}.rent"))
    return scenario.model_copy(update={"alternatives": alternatives})


def _look_up(alternative: Alternative, table: PriceTable, node: Node) -> Alternative:
    """Return a rented alternative with the lowest price that the table has for it, and the source of that."""
    rent = alternative.rent
    assert rent is not None
    purchase = "spot" if rent.interruptions_per_hour else "on-demand"
    rows = find_machine_offers(table, rent.machine) if rent.machine else find_gpu_offers(table, alternative.kind)
    offers = [row for row in rows if row.gpu and row.purchase == purchase and rent.region in (None, row.region)]
    if not offers:
        gpus = join_words(sorted({row.gpu for row in table.prices if row.gpu and row.purchase == purchase}))
        message = f"the price table has no {purchase} price of this kind, machine and region; give price_per_hour"
        raise node.error(f"{message}, or one that it has; its GPUs are {gpus}")
    row = min(offers, key=lambda row: row.compute_hourly_price(1))
    part = f", one of its {row.gpus_per_machine} GPUs" if row.gpus_per_machine > 1 else ""
    given = {"price_per_hour": row.compute_hourly_price(1), "source": f"{row.place}{part}, {row.date}, {row.source}"}
    return alternative.model_copy(update={"rent": rent.model_copy(update=given)})

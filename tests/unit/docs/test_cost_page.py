"""docs/cost.md: its example is what the stored results and the price table say, and its table names every key."""

import re
from pathlib import Path

from bench.store import Store
from collector.costs.document import list_texts
from collector.costs.evaluation import CostQuestion, evaluate_costs
from collector.prices.table import CarbonRow, PowerRow, PriceRow, PriceTable
from collector.results.load import load_runs
from runner.price_tables import load_prices

PAGE = Path(__file__).parents[3] / "docs" / "cost.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_example_is_what_the_stored_results_say() -> None:
    (command,) = re.findall(r"^benchmatrix cost (study-\S+) (study-\S+) \\\n\s+--store file://(\S+) ", TEXT, re.M)
    *run_ids, folder = command
    collections = load_runs(Store.open(f"file://{PAGE.parents[1] / folder}"), run_ids)
    document = evaluate_costs(collections, load_prices(), CostQuestion(machines={"cpu": "c7i.4xlarge"}))
    shown = TEXT.partition("```text\n")[2].partition("```")[0]
    assert list_texts(document)["Answers"] == shown.splitlines()


def test_the_example_table_of_prices_loads(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```yaml\n(title: Our cellar\n(?:.+\n)+?)```$", TEXT, re.M)
    path = tmp_path / "ours.yaml"
    path.write_text(block)
    table = load_prices(path)
    assert (table.currency, len(table.prices), len(table.carbon)) == ("EUR", 2, 1)


def test_every_key_is_in_the_table() -> None:
    rows = "".join(line for line in TEXT.splitlines() if line.startswith("| `"))
    for model in (PriceTable, PriceRow, CarbonRow, PowerRow):
        assert [name for name in model.model_fields if not re.search(rf"[`.]{name}[`[]", rows)] == []

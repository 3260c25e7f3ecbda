"""docs/tables.md: every column is described, and the question that it asks three times has one answer."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.schema import Verdict
from bench.store import Store
from collector.results.frames import (
    MEANINGS,
    RESULT_COLUMNS,
    SAMPLE_COLUMNS,
    TABLE_COLUMNS,
    TENANT_COLUMNS,
)
from collector.results.load import load_run
from factories import make_cell, make_result, make_run, make_validity, put_documents
from make_tables import describe_meaning

PAGE = Path(__file__).parents[3] / "docs" / "tables.md"
COLUMNS = {
    name: dtype
    for table in (RESULT_COLUMNS, SAMPLE_COLUMNS, TENANT_COLUMNS, *TABLE_COLUMNS.values())
    for name, dtype in table.items()
}
VERDICTS: tuple[Verdict, ...] = ("noisy", "throttled")
"""Of a third repeat of each cell: the former counts, the latter does not."""
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_every_column_has_a_meaning_and_every_meaning_a_column() -> None:
    assert all(describe_meaning(name) for name in COLUMNS)
    assert set(MEANINGS) - set(COLUMNS) == set()


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with the tables of two runs."""
    directory = tmp_path_factory.mktemp("store")
    store = Store.open(f"file://{directory}")
    cells = [make_cell(), make_cell(framework="jax", mode="compiled")]
    for run_id, seconds in (("night-1", 0.1), ("night-2", 0.4)):
        results = [
            make_result(cell, run_id=run_id, repeat=repeat, step_seconds=(seconds * repeat * factor,) * 3)
            for cell, factor in zip(cells, (1, 2), strict=True)
            for repeat in (1, 2)
        ]
        noisy, throttled = (
            make_result(cell, run_id=run_id, repeat=3, step_seconds=(seconds * 3,) * 3, validity=make_validity(verdict))
            for cell, verdict in zip(cells, VERDICTS, strict=True)
        )
        put_documents(store, make_run(cells, run_id=run_id), [*results, noisy, throttled])
        load_run(store, run_id, writes_tables=True)
    return directory


@pytest.mark.parametrize("example", EXAMPLES, ids=("duckdb", "polars", "pandas"))
def test_the_examples_give_one_answer(example: str, tables: Path) -> None:
    names: dict[str, Any] = {"STORE": str(tables)}
    exec(example, names)
    answer = names["answer"]
    frame = answer if isinstance(answer, pd.DataFrame) else pd.DataFrame(answer.to_dict(as_series=False))
    found = [
        (run, framework, round(seconds, 9), number)
        for run, framework, seconds, number in frame.itertuples(index=False, name=None)
    ]
    assert found == [
        ("night-1", "jax", 0.3, 2),
        ("night-1", "pytorch", 0.2, 3),  # 0.1, 0.2 and the noisy 0.3 s
        ("night-2", "jax", 1.2, 2),
        ("night-2", "pytorch", 0.8, 3),
    ]

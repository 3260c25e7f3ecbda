"""What the document of a result accepts, in any field, every table and page takes."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.schema import InvalidDocumentError, Result, read_result, read_run
from bench.store import Store
from factories import put_documents
from workspace import CallMain

RUN = next((Path(__file__).parents[4] / "docs" / "results" / "2026-11-28-h200-llm" / "runs").iterdir())
IDENTITY = ("run_id", "cell_id", "repeat", "attempt", "cell")
ODD: tuple[Any, ...] = (True, -1, 1.5, 1e300, "x", "\u202e<b>", "2026-01-01T00:00:00Z", None, [], ["x"], {}, {"x": "y"})


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the fields are, of a list those of its first entry."""
    named = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, part in named:
        yield *path, name
        yield from list_paths(part, (*path, name))


def list_accepted(document: dict[str, Any]) -> Iterator[Result]:
    """Yield the result with each odd value in each field, where it is one then, as repeats of its cell."""
    number = 0
    for *parents, name in [path for path in list_paths(document) if path[0] not in IDENTITY]:
        for value in ODD:
            changed = copy.deepcopy(document) | {"repeat": number + 1, "attempt": f"a{number}"}
            place = changed
            for parent in parents:
                place = place[parent]
            place[name] = value
            try:
                yield read_result(json.dumps(changed).encode())
            except InvalidDocumentError:
                continue
            number += 1


@pytest.mark.slow
def test_any_value_that_a_result_may_have_is_collected_reported_and_priced(tmp_path: Path, call_main: CallMain) -> None:
    run = read_run((RUN / "run.json").read_bytes())
    results = list(list_accepted(json.loads(min((RUN / "results").rglob("*.json")).read_bytes())))
    assert len(results) > 300
    planned = [entry.model_copy(update={"repeats": len(results)}) for entry in run.cells]
    put_documents(Store.open(f"file://{tmp_path}"), run.model_copy(update={"cells": tuple(planned)}), results)
    for command in ("report --format html,csv,parquet", "cost", "watch", "status"):
        code, out, err = call_main(*command.split(), "--store", f"file://{tmp_path}")
        assert (code, "Traceback" in err) == (0, False), (command, err)

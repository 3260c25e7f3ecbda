"""Strategies for what lies in a store: the documents of a run, and the data set that the collector keeps of them."""

import io
import json
import tempfile
from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from hypothesis import strategies as st

from bench.schema import Decision, Document, NodeFault, Placement, RawRemoval, Result, Run, Suspicion
from bench.store import Store, decision_key, suspicion_key
from collector.results.load import load_run
from fuzz.contradictions import draw_contradictions
from fuzz.inputs import COLUMN_TYPES, Contents, cast_quietly, draw_model
from fuzz.markers import NUMBERS, TEXTS
from fuzz.mutations import draw_contents, dump_json
from fuzz.schemas import draw_documents
from fuzz.workspaces import GPU_CELLS, RUN_A, TRAIN, make_beside, make_stored_result, make_stored_run, put_runs

GPU_RESULT, CPU_RESULT = make_stored_result(RUN_A, GPU_CELLS[0], 1), make_stored_result(RUN_A, TRAIN, 1)
BESIDE = make_beside()


def _draw(kind: type[Document], *documents: bytes) -> Contents:
    return draw_model(kind, [json.loads(document) for document in documents], dump_json)


def _find(part: str) -> tuple[str, bytes]:
    return next((key, data) for key, data in BESIDE.items() if f"/{part}/" in key)


def _make_documents() -> dict[str, tuple[str, Contents]]:
    run = make_stored_run(RUN_A, (TRAIN, *GPU_CELLS)).to_json()
    found = {"run": (f"runs/{RUN_A}/run.json", _draw(Run, run))}
    for name, result in (("result", CPU_RESULT), ("gpu-result", GPU_RESULT)):
        key = f"runs/{RUN_A}/results/{result.cell_id}/1-a1.json"
        found[name] = (key, _draw(Result, result.to_json()) | draw_contradictions(json.loads(result.to_json())))
    for part, kind in (("placements", Placement), ("node-faults", NodeFault), ("raw-removals", RawRemoval)):
        key, data = _find(part)
        found[part] = (key, _draw(kind, data))
    found["cancelled"] = (f"runs/{RUN_A}/cancelled/a1.json", st.sampled_from([b"", b"{}", b"\xff"]))
    found["suspicion"] = (suspicion_key("nightly", "c1"), draw_contents(draw_documents(Suspicion), dump_json))
    found["decision"] = (decision_key("nightly", "c1"), draw_contents(draw_documents(Decision), dump_json))
    return found


DOCUMENTS = _make_documents()
"""By name: the key in the store, and the strategy."""


@cache
def read_rows() -> tuple[bytes, ...]:
    """Return the files of the data set of a stored run."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"file://{folder}")
        put_runs(store)
        load_run(store, RUN_A, writes_tables=True)
        return tuple(path.read_bytes() for path in sorted(Path(folder).rglob("*.parquet")))


@st.composite
def draw_rows(draw: st.DrawFn) -> bytes:
    """Draw a file of the data set with a column that is gone, of another type, or has odd values."""
    table = pq.read_table(io.BytesIO(draw(st.sampled_from(read_rows()))))
    frame, metadata = table.to_pandas(), table.schema.metadata
    name = draw(st.sampled_from(list(frame.columns)))
    action = draw(st.sampled_from(["drop", "odd", "odd", "cast", "rename"]))
    values = st.sampled_from([text for text in TEXTS if "\ud800" not in text]) | st.sampled_from(NUMBERS[:-4])
    try:
        if action == "drop":
            frame = frame.drop(columns=name)
        elif action == "rename":
            frame = frame.rename(columns={name: draw(values)})
        elif action == "odd":
            frame[name] = pd.Series([draw(values)] * len(frame))
        else:
            frame[name] = cast_quietly(frame[name].astype(str), draw(st.sampled_from(COLUMN_TYPES)))
        changed = type(table).from_pandas(frame, preserve_index=False).replace_schema_metadata(metadata)
    except (ValueError, TypeError, OverflowError, ArithmeticError):
        return draw(st.sampled_from(read_rows()))
    buffer = io.BytesIO()
    pq.write_table(changed, buffer)
    return buffer.getvalue()


rows: Contents = draw_contents(draw_rows(), bytes)

"""Of a text that is no document, and of parts that do not fit, the reason is one line."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from bench.schema import InvalidDocumentError, Result, Run, read_document, read_result, read_run
from factories import START, make_cell, make_failed_result, make_gpu_use, make_phases, make_result, make_run
from tenancies import make_failed_record, make_record, make_shared_result, make_tenancy


def change_document(document: BaseModel, path: str, value: Any) -> str:
    """Return the document as JSON text with the value at `a.b.c` replaced or added."""
    *parents, key = path.split(".")
    content = json.loads(document.model_dump_json())
    inner = content
    for parent in parents:
        inner = inner[int(parent)] if isinstance(inner, list) else inner[parent]
    inner[int(key) if isinstance(inner, list) else key] = value
    return json.dumps(content)


def test_a_part_that_was_copied_with_a_wrong_value_is_refused() -> None:
    phases = make_phases((0.1, 0.1, 0.1), (0.2, 0.1)).model_copy(update={"build_seconds": -1.0})
    with pytest.raises(ValidationError, match="build_seconds"):
        make_result(phases=phases)


MAX_REASON_CHARACTERS = 300


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("surprise", 1, "no Result: surprise: Extra inputs are not permitted"),
        ("run_id", "a/b", "no Result: run_id: String should match pattern"),
        ("repeat", "1", "no Result: repeat: Input should be a valid integer, found '1'"),
        ("repeat", 0, "no Result: repeat: Input should be greater than or equal to 1"),
        ("cell.min_seconds", -1e-9, "no Result: cell.min_seconds: Input should be greater than or equal to 0"),
        ("samples.step_seconds", [0.1, 0.1, 0.0], "no Result: samples.step_seconds.2: "),
        ("samples.step_seconds", [0.1, 0.1, float("nan")], "no "),
        ("environment.settings.tf32", 0.5, "no Result: environment.settings.tf32."),
        ("started_at", "2026-03-01T12:00:00", "no Result: started_at: Input should have timezone info"),
        ("cell.batch_size", 0, "no Result: cell.batch_size: Input should be greater than or equal to 1"),
        ("cell_id", "conv6-00000000", "no Result: cell_id: 'conv6-00000000' is not the id of its cell"),
    ],
)
def test_the_first_error_is_named_by_its_place(path: str, value: Any, reason: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        read_result(change_document(make_result(), path, value).encode())
    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize(("read", "document"), [(read_result, make_result()), (read_run, make_run())])
def test_another_version_is_the_reason_whatever_else_is_wrong(
    read: Callable[[bytes], Result | Run], document: Result | Run
) -> None:
    content = json.loads(document.to_json()) | {"surprise": 1, "schema_version": 1}
    del content["run_id"]
    with pytest.raises(InvalidDocumentError) as caught:
        read(json.dumps(content).encode())
    assert str(caught.value) == "schema_version is 1, this version reads 2"


def test_a_reason_is_cut_to_a_length_that_fits_a_table() -> None:
    text = change_document(make_result(), "schema_version", "x\n" * 1_000)
    with pytest.raises(InvalidDocumentError) as caught:
        read_result(text.encode())
    assert (len(str(caught.value)), str(caught.value)[-1]) == (MAX_REASON_CHARACTERS, "…")


@given(st.integers(0, len(make_result().to_json()) - 1), st.binary(min_size=1, max_size=4))
def test_damage_anywhere_raises_no_other_error(place: int, damage: bytes) -> None:
    data = make_result().to_json()
    with suppress(InvalidDocumentError):
        read_result(data[:place] + damage + data[place + len(damage) :])


def test_the_signature_of_an_earlier_version_is_ignored() -> None:
    signed = make_result().to_json()[:-2] + b',\n "signature": "ed25519 0123 xyz"\n}'
    assert read_result(signed).to_json() == make_result().to_json()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell_id": make_cell(seed=1).cell_id}, "is not the id of its cell"),
        ({"cell": make_cell(num_steps=4)}, "step_seconds: 3 values, the cell asks for at least 4"),
        ({"cell": make_cell(num_warmup_steps=3)}, "warmup_step_seconds: 2 values, the cell asks for at least 3"),
        ({"finished_at": START - timedelta(microseconds=1)}, "finished_at is before started_at"),
        ({"samples": None}, "needs samples, memory, environment, validity and every phase"),
        ({"environment": None}, "needs samples, memory, environment, validity and every phase"),
        ({"phases": make_phases((0.1,) * 3, (0.2, 0.1), import_seconds=None)}, "every phase"),
        ({"phases": make_phases((0.1,) * 3, (0.2, 0.1), steady_seconds=0.2999)}, "more than its window"),
        ({"error": make_failed_result().error}, "a result with status 'ok' has none"),
        ({"status": "failed"}, "a result with status 'failed' must say why"),
        *(
            ({"cell": make_cell(tenants=2), "tenancy": tenancy}, "has a common window, and each of its tenants ended")
            for tenancy in (
                None,
                make_tenancy(make_record(0)),
                make_tenancy(make_record(0), make_failed_record(1)),
                make_tenancy(window_seconds=None),
            )
        ),
    ],
)
def test_a_result_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_result(**changes)


def test_a_window_set_beforehand_may_have_fewer_steps_than_asked_for() -> None:
    assert make_shared_result(cell=make_cell(tenants=2, num_steps=30)).cell.num_steps == 30


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (make_gpu_use(), "sm_clock_mhz"),
        (make_gpu_use(), "power_watts"),
        (make_gpu_use(), "sample_reasons"),
        (make_result(device_step_seconds=(0.1,) * 3).samples, "device_step_seconds"),
    ],
)
def test_series_of_the_same_samples_are_equally_long(part: BaseModel, name: str) -> None:
    text = change_document(part, name, getattr(part, name)[:2])
    with pytest.raises(InvalidDocumentError, match=f"{name} and [a-z]+_seconds differ in length"):
        read_document(type(part), text.encode())  # type: ignore[type-var]

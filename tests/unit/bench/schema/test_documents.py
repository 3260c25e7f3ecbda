"""Every document survives JSON unchanged; wrong values and unknown fields are refused."""

import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from bench.schema import Cell, Result, Run
from factories import (
    START,
    make_cell,
    make_cpu_use,
    make_environment,
    make_failed_result,
    make_gpu,
    make_gpu_use,
    make_phases,
    make_result,
    make_roofline,
    make_run,
    make_validity,
)
from schema_cases import change_document


def test_a_run_of_100_000_cells_fits_into_memory() -> None:
    """Measured on 5,000, which outweigh what this process allocates besides: 0.54 KB each.

    With a dictionary of its own, as Pydantic gives it one, a cell takes 1.1.
    From 22 fields on (there are 24) such a dictionary has room for 42. A set of the names of its fields would take 2.2.
    """
    number = 5000
    documents = [make_cell(seed=1000 + seed).to_json() for seed in range(number)]
    tracemalloc.start()
    try:
        cells = [Cell.model_validate_json(document) for document in documents]
        num_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(cells) == number
    assert num_bytes / number < 700


def test_a_changed_copy_leaves_the_cell_as_it_was() -> None:
    cell = make_cell(seed=1)
    copy = cell.model_copy(update={"seed": 2})
    assert (cell.seed, copy.seed) == (1, 2)
    assert copy == make_cell(seed=2)
    assert copy.to_json() == make_cell(seed=2).to_json()


@pytest.mark.parametrize(
    "document",
    [
        make_result(
            make_cell(device="gpu", num_gpus=2),
            device_step_seconds=(0.1, 0.1, 0.1),
            started_at=START,
            environment=make_environment(gpus=(make_gpu(), make_gpu(uuid="GPU-2"))),
            cpu_use=make_cpu_use(),
            gpu_use=(
                make_gpu_use(),
                make_gpu_use(uuid="GPU-2", power_watts=(), energy_joules=None, energy_source=None),
            ),
            roofline=make_roofline(),
            validity=make_validity("throttled", "noisy"),
        ),
        make_result(step_seconds=(1e-9, 0.1 + 0.2, 12345.678)),
        make_failed_result(status="oom", message="zu groß: 5 €", stderr_tail="a\x00b\n\ttail"),
        make_run([make_cell(), make_cell(seed=1)]),
    ],
    ids=["gpu", "cpu", "failed", "run"],
)
def test_a_document_survives_json(document: Result | Run) -> None:
    assert type(document).model_validate_json(document.to_json()) == document


def test_a_time_in_another_zone_stays_the_same_instant() -> None:
    noon_in_utc = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    in_new_york = noon_in_utc.astimezone(timezone(timedelta(hours=-5)))
    result = make_result(started_at=in_new_york, finished_at=in_new_york + timedelta(seconds=9))
    assert Result.model_validate_json(result.to_json()).started_at == noon_in_utc


def test_documents_cannot_be_changed() -> None:
    result = make_result()
    for document, field in ((result, "repeat"), (result.cell, "seed"), (result.phases, "build_seconds")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(document, field, 2)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("surprise", 1),
        ("cell.surprise", 1),
        ("samples.surprise", 1),
        ("environment.gpus", None),
        ("schema_version", 1),
        ("schema_version", None),
        ("repeat", 0),
        ("repeat", "1"),
        ("repeat", 10**9 + 1),
        ("run_id", "Smoke"),
        ("run_id", "a/b"),
        ("run_id", "a" * 64),
        ("status", "fine"),
        ("written_by", "me"),
        ("cell.batch_size", 0),
        ("cell.model", "conv7"),
        ("cell.mode", "graph"),
        ("cell.precision", "int8"),
        ("cell.num_gpus", 0),
        ("cell.input_size", 1),
        ("cell.num_classes", 1),
        ("cell.data_dir", ""),
        ("cell.sampling_seconds", -0.1),
        ("cell.seed", -1),
        ("cell.seed", 2**32),
        ("cell.max_warmup_seconds", 0),
        ("cell.min_seconds", -1e-9),
        ("cell.min_seconds", float("nan")),
        ("samples.step_seconds", [0.1, 0.1, 0.0]),
        ("samples.step_seconds", [0.1, 0.1, float("nan")]),
        ("samples.step_seconds", [0.1, 0.1, "0.1"]),
        ("samples.warmup_step_seconds", [0.0]),
        ("samples.reached_steady", 1),
        ("phases.import_seconds", -0.1),
        ("phases.first_step_seconds", 0.0),
        ("memory.peak_rss_bytes", -1),
        ("environment.num_threads", 0),
        ("environment.cpu_quota_cores", 0.0),
        ("environment.versions.torch", 2),
        ("environment.settings.tf32", 0.5),
        ("started_at", "2026-03-01T12:00:00"),
        ("finished_at", "2026-03-01T11:59:59Z"),
    ],
)
def test_a_wrong_value_in_json_is_refused(path: str, value: Any) -> None:
    text = change_document(make_result(), path, value)
    with pytest.raises(ValidationError):
        Result.model_validate_json(text)


def test_naive_times_are_refused() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        make_result(started_at=datetime(2026, 3, 1, 12, 0))


def test_a_part_that_was_copied_with_a_wrong_value_is_refused() -> None:
    phases = make_phases((0.1, 0.1, 0.1), (0.2, 0.1)).model_copy(update={"build_seconds": -1.0})
    with pytest.raises(ValidationError, match="build_seconds"):
        make_result(phases=phases)

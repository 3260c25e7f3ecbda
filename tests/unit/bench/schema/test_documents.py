"""Every document survives JSON unchanged; wrong values and unknown fields are refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from bench.schema import Result, Run
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


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("surprise", 1),
        ("schema_version", 1),
        ("repeat", "1"),
        ("run_id", "a/b"),
        ("cell.batch_size", 0),
        ("cell.min_seconds", -1e-9),
        ("samples.step_seconds", [0.1, 0.1, 0.0]),
        ("samples.step_seconds", [0.1, 0.1, float("nan")]),
        ("environment.settings.tf32", 0.5),
        ("started_at", "2026-03-01T12:00:00"),
    ],
)
def test_a_wrong_value_in_json_is_refused(path: str, value: Any) -> None:
    text = change_document(make_result(), path, value)
    with pytest.raises(ValidationError):
        Result.model_validate_json(text)


def test_a_part_that_was_copied_with_a_wrong_value_is_refused() -> None:
    phases = make_phases((0.1, 0.1, 0.1), (0.2, 0.1)).model_copy(update={"build_seconds": -1.0})
    with pytest.raises(ValidationError, match="build_seconds"):
        make_result(phases=phases)

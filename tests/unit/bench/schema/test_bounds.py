"""Numbers and times of documents lie within bounds that everything downstream can compute with; others are refused."""

import json
from typing import Any

import pytest

from bench.schema import InvalidDocumentError, Result, read_result
from factories import make_cell, make_environment, make_gpu, make_gpu_use, make_result
from schema_cases import change_document

DAY = 86_400.0
CENTURY = 100 * 366 * DAY


def make_gpu_result() -> Result:
    return make_result(
        make_cell(device="gpu", num_warmup_steps=1, num_steps=1),
        device_step_seconds=(0.1, 0.1, 0.1),
        environment=make_environment(gpus=(make_gpu(),)),
        gpu_use=(make_gpu_use(),),
    )


def change_result(path: str, value: Any) -> bytes:
    return change_document(make_gpu_result(), path, value).encode()


@pytest.mark.parametrize(
    ("path", "within", "beyond"),
    [
        ("samples.step_seconds.0", [1e-9], [0.0, 9.9e-10, -1.0, DAY + 1, 1e30]),
        ("samples.device_step_seconds.0", [1e-9, DAY], [0.0, DAY + 1]),
        ("phases.first_step_seconds", [1e-9, DAY], [0.0, DAY + 1]),
        ("phases.build_seconds", [0.0, 5e-324, CENTURY], [-1e-9, CENTURY + 1, 1e300]),
        ("phases.steady_seconds", [CENTURY], [0.0, CENTURY + 1]),
        ("memory.peak_rss_bytes", [0, 2**60 - 1], [-1, 2**60, 2**63]),
        ("environment.memory_total_bytes", [2**60 - 1], [2**60]),
        ("gpu_use.0.num_steps", [0, 2**53], [-1, 2**53 + 1]),
        ("gpu_use.0.idle_power_watts", [0.0, 1e24], [-1.0, 1.1e24, 1e300]),
        ("started_at", ["2000-01-01T00:00:00Z"], ["1999-12-31T23:59:59Z", "1970-01-01T00:00:00Z"]),
        ("finished_at", ["2100-01-01T00:00:00Z"], ["2100-01-01T00:00:01Z", "9999-12-31T23:00:00Z"]),
    ],
)  # fmt: skip
def test_a_value_at_its_bound_is_read_and_one_beyond_is_refused_by_name(
    path: str, within: list[Any], beyond: list[Any]
) -> None:
    for value in within:
        assert read_result(change_result(path, value)).cell == make_gpu_result().cell
    for value in beyond:
        with pytest.raises(InvalidDocumentError) as caught:
            read_result(change_result(path, value))
        assert path in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "bound"),
    [
        ("samples.step_seconds.1", 0.0, "greater than or equal to 0.000000001"),
        ("samples.step_seconds.1", 1e30, "less than or equal to 86400"),
        ("memory.peak_rss_bytes", 2**60, "less than or equal to 1152921504606846975"),
        ("started_at", "1970-01-01T00:00:00Z", "is not between 2000-01-01T00:00:00+00:00 and 2100-01-01"),
    ],
)  # fmt: skip
def test_the_reason_names_the_bound(path: str, value: Any, bound: str) -> None:
    with pytest.raises(InvalidDocumentError, match=f"{path}: .*") as caught:
        read_result(change_result(path, value))
    assert bound in str(caught.value)


def test_the_json_schema_tells_the_bounds_of_a_step() -> None:
    samples = Result.model_json_schema()["$defs"]["Samples"]["properties"]["step_seconds"]["items"]
    assert json.loads(json.dumps(samples)) == {"type": "number", "minimum": 1e-9, "maximum": 86_400.0}

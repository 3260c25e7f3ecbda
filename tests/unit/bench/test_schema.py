"""The documents: what goes through unchanged, what is refused, and how cells are named."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from bench.catalog import MODELS, ModelSpec
from bench.schema import (
    MAX_AMOUNT,
    MODES,
    SMALLEST_POSITIVE,
    Cell,
    Device,
    Phases,
    PlannedCell,
    Reason,
    Result,
    Run,
    Samples,
    Validity,
    export_json_schema,
)
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

NOISY = Reason(verdict="noisy", message="spread of 9%, more than 5%")
DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
OTHER_VALUES = {
    "model": "resnet18",
    "framework": "tensorflow",
    "device": "gpu",
    "phase": "infer",
    "precision": "bf16",
    "mode": "graph",
    "num_gpus": 2,
    "batch_size": 65,
    "input_size": 33,
    "num_classes": 11,
    "data_dir": "/data/cifar10",
    "num_warmup_steps": 2,
    "max_warmup_seconds": 31.0,
    "num_steps": 2,
    "min_seconds": 0.5,
    "sampling_seconds": 0.0,
    "seed": 1,
}
# What a field's other value is possible with, where it is not with the cell of `make_cell`.
NEEDED = {"mode": {"framework": "tensorflow"}, "num_gpus": {"device": "gpu"}}


@st.composite
def draw_cells(draw: st.DrawFn) -> Cell:
    framework = draw(st.sampled_from(list(MODES)))
    model, spec = draw(st.sampled_from(list(MODELS.items())))
    devices: tuple[Device, ...] = ("cpu", "gpu")
    device = draw(st.sampled_from(devices))
    num_gpus = 1 if device == "cpu" else draw(st.integers(1, 64))
    multiple = spec.input_size_multiple
    return Cell(
        model=model,
        framework=framework,
        device=device,
        phase=draw(st.sampled_from(spec.phases)),
        precision=draw(st.sampled_from(["fp32", "tf32", "fp16", "bf16"])),
        mode=draw(st.sampled_from(MODES[framework])),
        num_gpus=num_gpus,
        batch_size=num_gpus * draw(st.integers(1, 10**9 // num_gpus)),
        input_size=multiple * draw(st.integers(-(-spec.min_input_size // multiple), 65_536 // multiple)),
        num_classes=None if spec.num_classes is None else draw(st.integers(2, 10**7)),
        data_dir=None if spec.data is None else draw(st.none() | st.text("/ab ü.", min_size=1, max_size=4096)),
        num_warmup_steps=draw(st.integers(1, 10**9)),
        max_warmup_seconds=draw(st.floats(SMALLEST_POSITIVE, MAX_AMOUNT)),
        num_steps=draw(st.integers(1, 10**9)),
        min_seconds=draw(st.floats(-0.0, MAX_AMOUNT)),
        sampling_seconds=draw(st.floats(-0.0, MAX_AMOUNT)),
        seed=draw(st.integers(0, 2**32 - 1)),
    )


def change_document(document: BaseModel, path: str, value: Any) -> str:
    """Return the document as JSON text with the value at `a.b.c` replaced or added."""
    *parents, key = path.split(".")
    content = json.loads(document.model_dump_json())
    inner = content
    for parent in parents:
        inner = inner[int(parent)] if isinstance(inner, list) else inner[parent]
    inner[key] = value
    return json.dumps(content)


# Round trip


@given(draw_cells())
def test_a_cell_survives_json(cell: Cell) -> None:
    assert cell == Cell.model_validate_json(cell.to_json())


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
    assert document == type(document).model_validate_json(document.to_json())


def test_a_time_in_another_zone_stays_the_same_instant() -> None:
    noon_in_utc = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    in_new_york = noon_in_utc.astimezone(timezone(timedelta(hours=-5)))
    result = make_result(started_at=in_new_york, finished_at=in_new_york + timedelta(seconds=9))
    assert noon_in_utc == Result.model_validate_json(result.to_json()).started_at


def test_documents_cannot_be_changed() -> None:
    result = make_result()
    for document, field in ((result, "repeat"), (result.cell, "seed"), (result.phases, "build_seconds")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(document, field, 2)


# Strictness


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("surprise", 1),
        ("cell.surprise", 1),
        ("samples.surprise", 1),
        ("environment.gpus", None),
        ("schema_version", 1),
        ("schema_version", True),
        ("schema_version", 2.0),
        ("schema_version", "2"),
        ("schema_version", None),
        ("repeat", 0),
        ("repeat", True),
        ("repeat", 1.0),
        ("repeat", "1"),
        ("repeat", 10**9 + 1),
        ("run_id", "Smoke"),
        ("run_id", "-a"),
        ("run_id", "a/b"),
        ("run_id", "a\n"),
        ("run_id", "a" * 64),
        ("attempt", ""),
        ("status", "fine"),
        ("written_by", "me"),
        ("cell.batch_size", 0),
        ("cell.batch_size", True),
        ("cell.batch_size", 64.0),
        ("cell.model", "conv7"),
        ("cell.mode", "graph"),
        ("cell.precision", "int8"),
        ("cell.num_gpus", 0),
        ("cell.num_gpus", 65),
        ("cell.num_gpus", True),
        ("cell.input_size", 1),
        ("cell.num_classes", 1),
        ("cell.data_dir", ""),
        ("cell.data_dir", 1),
        ("cell.sampling_seconds", -0.1),
        ("cell.seed", -1),
        ("cell.seed", 2**32),
        ("cell.max_warmup_seconds", 0),
        ("cell.min_seconds", -1e-9),
        ("cell.min_seconds", True),
        ("cell.min_seconds", float("nan")),
        ("cell.min_seconds", float("inf")),
        ("samples.step_seconds", [0.1, 0.1, 0.0]),
        ("samples.step_seconds", [0.1, 0.1, -0.1]),
        ("samples.step_seconds", [0.1, 0.1, float("nan")]),
        ("samples.step_seconds", [0.1, 0.1, float("inf")]),
        ("samples.step_seconds", [0.1, 0.1, "0.1"]),
        ("samples.step_seconds", [0.1, 0.1, True]),
        ("samples.step_seconds", [0.1, 0.1, None]),
        ("samples.warmup_step_seconds", [0.0]),
        ("samples.reached_steady", 1),
        ("phases.import_seconds", -0.1),
        ("phases.first_step_seconds", 0.0),
        ("phases.steady_seconds", float("inf")),
        ("memory.peak_rss_bytes", -1),
        ("memory.peak_rss_bytes", 1.5),
        ("memory.peak_rss_bytes", True),
        ("environment.num_threads", 0),
        ("environment.cpu_quota_cores", 0.0),
        ("environment.versions.torch", 2),
        ("environment.settings.tf32", 0.5),
        ("environment.settings.tf32", None),
        ("started_at", "2026-03-01T12:00:00"),
        ("started_at", 1_772_366_400),
        ("finished_at", "2026-03-01T11:59:59Z"),
    ],
)
def test_a_wrong_value_in_json_is_refused(path: str, value: Any) -> None:
    text = change_document(make_result(), path, value)
    with pytest.raises(ValidationError):
        Result.model_validate_json(text)


@pytest.mark.parametrize(
    "fields",
    [
        {"batch_size": True},
        {"batch_size": 64.0},
        {"batch_size": "64"},
        {"min_seconds": float("nan")},
        {"max_warmup_seconds": float("inf")},
        {"min_seconds": "2"},
        {"schema_version": True},
        {"schema_version": 1},
    ],
)
def test_a_wrong_value_in_python_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make_cell(**fields)


def test_another_version_is_refused_in_words() -> None:
    text = change_document(make_result(), "schema_version", 1)
    with pytest.raises(ValidationError, match="reads version 2 of its documents, not 1"):
        Result.model_validate_json(text)


def test_naive_times_are_refused() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        make_result(started_at=datetime(2026, 3, 1, 12, 0))


def test_a_part_that_was_copied_with_a_wrong_value_is_refused() -> None:
    phases = make_phases((0.1, 0.1, 0.1), (0.2, 0.1)).model_copy(update={"build_seconds": -1.0})
    with pytest.raises(ValidationError, match="build_seconds"):
        make_result(phases=phases)


# Consistency


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell_id": make_cell(seed=1).cell_id}, "is not the id of its cell"),
        ({"finished_at": START - timedelta(microseconds=1)}, "finished_at is before started_at"),
        ({"samples": None}, "needs samples, memory, environment, validity and every phase"),
        ({"memory": None}, "needs samples, memory, environment, validity and every phase"),
        ({"validity": None}, "needs samples, memory, environment, validity and every phase"),
        ({"environment": None}, "needs samples, memory, environment, validity and every phase"),
        ({"phases": make_phases((0.1,) * 3, (0.2, 0.1), import_seconds=None)}, "every phase"),
        ({"phases": make_phases((0.1,) * 3, (0.2, 0.1), steady_seconds=0.2999)}, "more than its window"),
        ({"phases": make_phases((0.1,) * 3, (0.2, 0.1), warmup_seconds=0.2999)}, "more than its window"),
        ({"error": make_failed_result().error}, "a result with status 'ok' has none"),
        ({"status": "failed"}, "a result with status 'failed' must say why"),
        ({"status": "timeout"}, "a result with status 'timeout' must say why"),
    ],
)
def test_a_result_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_result(**changes)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (make_cell(num_steps=4), "step_seconds: 3 values, the cell asks for at least 4"),
        (make_cell(num_warmup_steps=3), "warmup_step_seconds: 2 values, the cell asks for at least 3"),
    ],
)
def test_fewer_steps_than_asked_for_are_refused(cell: Cell, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_result(cell)


def test_exactly_as_many_steps_as_asked_for_are_enough() -> None:
    assert "ok" == make_result(make_cell(num_steps=3, num_warmup_steps=2)).status


def test_step_times_of_two_clocks_must_be_equally_many() -> None:
    with pytest.raises(ValidationError, match="differ in length"):
        Samples(warmup_step_seconds=(), step_seconds=(0.1, 0.1), device_step_seconds=(0.1,), reached_steady=True)


@pytest.mark.parametrize(
    ("make", "fields", "message"),
    [
        (make_gpu_use, {"sm_clock_mhz": (1590,)}, "sm_clock_mhz: neither empty nor as long as sample_seconds"),
        (make_gpu_use, {"power_watts": (60.0,) * 4}, "power_watts: neither empty nor as long as sample_seconds"),
        (make_gpu_use, {"energy_source": None}, "one is there without the other"),
        (make_gpu_use, {"energy_joules": None}, "one is there without the other"),
        (make_gpu_use, {"throttle_reasons": {"power cap": 1.1}}, "less than or equal to 1"),
        (Validity, {"verdict": "noisy", "reasons": ()}, "is 'valid' where there are no reasons, and only there"),
        (Validity, {"verdict": "valid", "reasons": (NOISY,)}, "is 'valid' where there are no reasons, and only there"),
        (Validity, {"verdict": "throttled", "reasons": (NOISY,)}, "'throttled' is the verdict of none of the reasons"),
    ],
)
def test_a_measurement_that_contradicts_itself_is_refused(
    make: Callable[..., BaseModel], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        make(**fields)


def test_the_first_gpu_of_an_environment_is_the_gpu() -> None:
    first, second = make_gpu(), make_gpu(uuid="GPU-2")
    assert first == make_environment(gpus=(first, second)).gpu
    assert make_environment(gpus=()).gpu is None


def test_a_failed_result_needs_nothing_but_its_error() -> None:
    result = make_failed_result(phases=Phases(import_seconds=2.0))
    assert (None, None) == (result.samples, result.throughput_samples_per_s)


def test_a_result_that_was_cut_short_has_the_steps_that_it_came_to() -> None:
    samples = Samples(warmup_step_seconds=(0.2,), step_seconds=(0.1,), device_step_seconds=None, reached_steady=False)
    result = make_failed_result(status="timeout", samples=samples)
    assert samples == result.samples
    assert result.throughput_samples_per_s is None


# What a cell can be


def make_spec(**overrides: Any) -> ModelSpec:
    fields: dict[str, Any] = {"module": "x", "task": "image-classification", "input_size": 32, "num_classes": 10}
    return ModelSpec(**(fields | overrides))


@pytest.mark.parametrize(
    ("spec", "fields", "message"),
    [
        ({}, {"num_classes": None}, "num_classes: tiny is a classifier and needs a number of classes"),
        ({"num_classes": None}, {"num_classes": 10}, "num_classes: tiny has no classes; leave it out or give null"),
        ({"phases": ("infer",)}, {"phase": "train"}, "phase: 'train' makes no sense for tiny; it has infer"),
        ({"min_input_size": 33}, {}, r"input_size: 32 does not fit tiny: at least 33 \["),
        ({"input_size_multiple": 5}, {}, "input_size: 32 does not fit tiny: at least 8 and a multiple of 5"),
        ({}, {"data_dir": "/data"}, "data_dir: tiny runs on synthetic data only; leave it out"),
        ({}, {"num_gpus": 2}, "num_gpus: is 1 where device is 'cpu'"),
        ({}, {"device": "gpu", "num_gpus": 3}, "batch_size: 64 cannot be shared evenly by 3 GPUs"),
        ({}, {"mode": "graph"}, "mode: 'graph' is not a mode of pytorch; it has eager, compiled"),
        ({}, {"framework": "tensorflow", "mode": "jit"}, "Input should be 'eager', 'graph' or 'compiled'"),
        ({}, {"framework": "jax"}, "mode: 'eager' is not a mode of jax; it has compiled"),
    ],
)
def test_a_cell_that_makes_no_sense_is_refused(
    spec: dict[str, Any], fields: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS, "tiny", make_spec(**spec))
    with pytest.raises(ValidationError, match=message):
        make_cell(**({"model": "tiny"} | fields))


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"num_classes": None}, {"num_classes": None}),
        ({"phases": ("infer",)}, {"phase": "infer"}),
        ({"min_input_size": 32}, {}),
        ({"min_input_size": 2}, {"input_size": 2}),
        ({"input_size_multiple": 4}, {}),
        ({"data": "cifar10"}, {"data_dir": "/data"}),
        ({}, {"device": "gpu", "num_gpus": 64}),
        ({}, {"framework": "jax", "mode": "compiled"}),
    ],
)
def test_a_cell_at_the_bounds_of_its_model_is_accepted(
    spec: dict[str, Any], fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS, "tiny", make_spec(**spec))
    cell = make_cell(**({"model": "tiny"} | fields))
    assert fields == {key: getattr(cell, key) for key in fields}


def test_an_unknown_model_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValidationError, match=r"model: 'conv7' is unknown; known are conv6, "):
        make_cell(model="conv7")


# Identity


def compute_cell_id(fields: dict[str, Any]) -> str:
    """The design's rule, written down a second time: slug and SHA-256 of JSON with sorted keys and no spaces."""
    members = (f"{json.dumps(key)}:{json.dumps(fields[key])}" for key in sorted(fields))
    digest = hashlib.sha256(("{" + ",".join(members) + "}").encode("ascii")).hexdigest()
    device = fields["device"] if fields["num_gpus"] == 1 else f"{fields['num_gpus']}gpu"
    names = [fields["model"], fields["framework"], device, *(fields[key] for key in ("phase", "precision", "mode"))]
    slug = f"{'-'.join(names)}-b{fields['batch_size']}"[:54]
    return f"{slug.rstrip('-')}-{digest[:8]}"


@given(draw_cells(), st.randoms())
def test_a_cells_id_is_slug_and_hash_whatever_the_order_of_its_keys(cell: Cell, random: Any) -> None:
    fields = json.loads(cell.to_json())
    keys = list(fields)
    random.shuffle(keys)
    shuffled = Cell.model_validate_json(json.dumps({key: fields[key] for key in keys}))
    assert compute_cell_id(fields) == shuffled.cell_id


def test_a_cells_id_is_the_same_in_every_process() -> None:
    # printf '%s' '{"batch_size":64,"device":"cpu",...}' | sha256sum
    expected = "conv6-pytorch-cpu-train-fp32-eager-b64-7890d9fa"
    program = "from factories import make_cell; print(make_cell().cell_id)"
    for seed in ("0", "1", "4711"):
        variables = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])}
        printed = subprocess.run(
            [sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True
        ).stdout
        assert expected == printed.strip()


@pytest.mark.parametrize(("field", "value"), OTHER_VALUES.items())
def test_another_value_in_any_field_is_another_cell(field: str, value: Any) -> None:
    needed = NEEDED.get(field, {})
    assert make_cell(**needed).cell_id != make_cell(**(needed | {field: value})).cell_id


def test_every_field_that_can_vary_was_varied() -> None:
    assert set(Cell.model_fields) - {"schema_version"} == set(OTHER_VALUES)


@given(draw_cells(), draw_cells())
def test_ids_are_equal_exactly_for_equal_cells(one: Cell, other: Cell) -> None:
    assert (one == other) == (one.cell_id == other.cell_id)


@pytest.mark.parametrize(("one", "other"), [(2, 2.0), (-0.0, 0.0), (0, 0.0), (1e22, 10**22)])
def test_equal_numbers_make_equal_ids(one: float, other: float) -> None:
    assert make_cell(min_seconds=one).cell_id == make_cell(min_seconds=other).cell_id


@given(draw_cells())
@settings(max_examples=30)
def test_a_cells_id_fits_a_dns_label(cell: Cell) -> None:
    assert DNS_LABEL.fullmatch(cell.cell_id)


def test_an_id_says_how_many_gpus_where_there_are_several() -> None:
    cell = make_cell(device="gpu", num_gpus=2, mode="compiled", precision="bf16")
    assert cell.cell_id.startswith("conv6-pytorch-2gpu-train-bf16-compiled-b64-")


def test_the_longest_id_fits_a_dns_label() -> None:
    cell = make_cell(model="resnet18", framework="tensorflow", phase="infer", mode="graph", batch_size=10**9)
    assert DNS_LABEL.fullmatch(cell.cell_id)
    assert cell.cell_id.startswith("resnet18-tensorflow-cpu-infer-fp32-graph-b1000000000-")


def test_a_longer_name_is_cut_to_a_dns_label(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ModelSpec(module="x", task="image-classification", input_size=32, num_classes=10)
    monkeypatch.setitem(MODELS, "a" * 53 + "-x", spec)
    cell_id = make_cell(model="a" * 53 + "-x").cell_id
    assert "a" * 53 == cell_id[:-9]  # no '-' before the one that separates the hash
    assert DNS_LABEL.fullmatch(cell_id)


# Numbers


def test_throughput_is_samples_of_the_window_over_its_seconds() -> None:
    # 4 steps of 8 samples in a window of 2.0 s, of which the steps themselves took 1.6 s: 32 / 2.0.
    steps = (0.4, 0.4, 0.4, 0.4)
    result = make_result(
        make_cell(batch_size=8), step_seconds=steps, phases=make_phases(steps, (0.2, 0.1), steady_seconds=2.0)
    )
    assert 16.0 == result.throughput_samples_per_s


def test_throughput_counts_a_slow_step() -> None:
    # One step of 9.7 s among three of 0.1 s: 4 x 10 samples in 10.0 s, not 100 a second.
    result = make_result(make_cell(batch_size=10), step_seconds=(0.1, 9.7, 0.1, 0.1))
    assert 4.0 == pytest.approx(result.throughput_samples_per_s)


# Plans


def test_equal_plans_have_equal_ids_whatever_their_order_and_limits() -> None:
    cells = [make_cell(seed=seed) for seed in range(3)]
    run = make_run(cells, timeout_seconds=600.0)
    other = make_run(reversed(cells), timeout_seconds=60.0, run_id="another", hostname="elsewhere")
    assert run.plan_id == other.plan_id


@pytest.mark.parametrize(
    "other",
    [
        make_run([make_cell()], repeats=4),
        make_run([make_cell(seed=1)]),
        make_run([make_cell(), make_cell(seed=1)]),
        make_run([]),
    ],
    ids=["repeats", "cell", "more", "none"],
)
def test_other_plans_have_other_ids(other: Run) -> None:
    assert make_run([make_cell()]).plan_id != other.plan_id


def test_repeats_of_a_run_are_summed_over_its_cells() -> None:
    planned = tuple(
        PlannedCell(cell=make_cell(seed=number), repeats=number, timeout_seconds=60.0) for number in (1, 2, 4)
    )
    assert 7 == make_run().model_copy(update={"cells": planned}).num_repeats


# The exported JSON Schema


def make_validator(name: str) -> jsonschema.Draft202012Validator:
    schema = export_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema | {"$ref": f"#/$defs/{name}"})


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("Cell", make_cell()),
        ("Result", make_result()),
        ("Result", make_result(make_cell(device="gpu"), device_step_seconds=(0.1, 0.1, 0.1))),
        ("Result", make_failed_result(status="oom")),
        ("Run", make_run()),
    ],
)
def test_the_json_schema_accepts_what_is_written(name: str, document: BaseModel) -> None:
    make_validator(name).validate(json.loads(document.model_dump_json()))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("surprise", 1),
        ("cell.surprise", 1),
        ("schema_version", 1),
        ("repeat", 0),
        ("repeat", True),
        ("status", "fine"),
        ("cell.batch_size", "64"),
        ("cell.input_size", 1),
        ("cell.num_gpus", 0),
        ("samples.step_seconds", [0.0]),
        ("phases.build_seconds", -1),
        ("memory.peak_rss_bytes", -1),
        ("cell_id", "conv6"),
        ("run_id", "Smoke"),
    ],
)
def test_the_json_schema_refuses_a_wrong_value(path: str, value: Any) -> None:
    document = json.loads(change_document(make_result(), path, value))
    with pytest.raises(jsonschema.ValidationError):
        make_validator("Result").validate(document)


def test_the_json_schema_names_every_document_and_describes_its_fields() -> None:
    definitions = export_json_schema()["$defs"]
    assert {"Cell", "Result", "Run", "Samples", "Phases", "Memory", "Environment", "Gpu", "Failure"} <= set(definitions)
    assert (
        "Samples of one step, over all GPUs: the global batch."
        == definitions["Cell"]["properties"]["batch_size"]["description"]
    )

"""Documents for tests of the schema: arbitrary valid cells, and documents with one value replaced."""

import json
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

from bench.registry import FRAMEWORKS, MODELS
from bench.schema import Cell, Device, Neighbour, Sharing
from bench.schema.document import MIN_STEP_SECONDS

MAX_SECONDS = 1e10
SHARINGS: tuple[Sharing, ...] = ("time-slicing", "mps", "mig")
DEVICES: tuple[Device, ...] = ("cpu", "gpu")


@st.composite
def draw_cells(draw: st.DrawFn) -> Cell:
    framework = draw(st.sampled_from(list(FRAMEWORKS)))
    model, spec = draw(st.sampled_from(list(MODELS.items())))
    device = draw(st.sampled_from(DEVICES))
    num_gpus = 1 if device == "cpu" else draw(st.integers(1, 64))
    multiple = spec.input_size_multiple
    tenants = draw(st.integers(1, 64)) if num_gpus == 1 else 1
    sharing: Sharing = draw(st.sampled_from(SHARINGS)) if (device, num_gpus) == ("gpu", 1) else "time-slicing"
    modes = [mode for mode in FRAMEWORKS[framework].modes if mode != "fused-norm" or spec.has_batch_norm]
    return Cell(
        model=model,
        framework=framework,
        device=device,
        phase=draw(st.sampled_from(spec.phases)),
        precision=draw(st.sampled_from(["fp32", "tf32", "fp16", "bf16"])),
        mode=draw(st.sampled_from(modes)),
        num_gpus=num_gpus,
        batch_size=num_gpus * draw(st.integers(1, 10**9 // num_gpus)),
        input_size=multiple * draw(st.integers(-(-spec.min_input_size // multiple), 65_536 // multiple)),
        num_classes=None if spec.num_classes is None else draw(st.integers(2, 10**7)),
        data_dir=None if spec.data is None else draw(st.none() | st.text("/ab ü.", min_size=1, max_size=4096)),
        num_warmup_steps=draw(st.integers(1, 10**9)),
        max_warmup_seconds=draw(st.floats(MIN_STEP_SECONDS, MAX_SECONDS)),
        num_steps=draw(st.integers(1, 10**9)),
        min_seconds=draw(st.floats(-0.0, MAX_SECONDS)),
        sampling_seconds=draw(st.floats(-0.0, MAX_SECONDS)),
        num_profiled_steps=draw(st.integers(0, 100)),
        pipelined_seconds=draw(st.floats(-0.0, MAX_SECONDS)),
        sustain_seconds=draw(st.floats(-0.0, MAX_SECONDS)) if tenants == 1 else 0.0,
        seed=draw(st.integers(0, 2**32 - 1)),
        tenants=tenants,
        sharing=sharing,
        neighbour=draw(st.none() | st.builds(make_neighbour, st.integers(1, 10**9))) if tenants > 1 else None,
    )


def make_neighbour(batch_size: int) -> Neighbour:
    """Return a neighbour that every framework can run."""
    return Neighbour(
        model="conv6",
        phase="infer",
        batch_size=batch_size,
        precision="fp32",
        mode="compiled",
        input_size=32,
        num_classes=10,
    )


def change_document(document: BaseModel, path: str, value: Any) -> str:
    """Return the document as JSON text with the value at `a.b.c` replaced or added."""
    *parents, key = path.split(".")
    content = json.loads(document.model_dump_json())
    inner = content
    for parent in parents:
        inner = inner[int(parent)] if isinstance(inner, list) else inner[parent]
    inner[int(key) if isinstance(inner, list) else key] = value
    return json.dumps(content)

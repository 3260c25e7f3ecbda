"""Name cells and single values of their fields in words; without pandas, as the command line has to start fast."""

from collections.abc import Iterable, Mapping
from typing import Any

from bench.registry import FRAMEWORKS, MODELS
from bench.schema import WHOLE_DEVICE, Cell
from collector.units import count_things

Fields = Mapping[str, Any]
"""Fields of a cell by their names, those that are known of it; None where a field has no value."""

FRAMEWORK_NAMES: dict[str, str] = {name: framework.label for name, framework in FRAMEWORKS.items()}
DEVICE_NAMES = {"cpu": "CPU", "gpu": "GPU"}
PHASE_NAMES = {"train": "training", "infer": "inference", "prefill": "prefill", "decode": "decoding"}
SIZE_UNITS = {
    "image-classification": "px",
    "image-translation": "px",
    "text-classification": "tokens",
    "matrix-product": "rows",
    "text-generation": "tokens",
}
"""What `input_size` counts, by the task of the model."""
OPTIONAL_FIELDS = {
    "precision": "{}",
    "num_gpus": "{} GPUs",
    "num_classes": "{} classes",
    "data_dir": "data of {}",
    "seed": "seed {}",
    "num_warmup_steps": "{} warm-up steps",
    "max_warmup_seconds": "{:g} s warm-up",
    "num_steps": "{} steps",
    "min_seconds": "{:g} s window",
    "sampling_seconds": "{:g} s sampled",
    "pipelined_seconds": "{:g} s pipelined",
    "sustain_seconds": "{:g} s sustained",
    "num_profiled_steps": "{} steps profiled",
}
"""Fields that the name of a row holds only where the rows vary them, and how they are written."""
TOKEN_PHASES = ("prefill", "decode")
"""The phases of language models: prompts that go in, and one token of each sequence that comes out."""
ABSENT_FIELDS = {"num_classes": "no classes", "data_dir": "synthetic data"}
SHARING_NAMES = {"time-slicing": "time-slicing", "mps": "MPS", "mig": "MIG"}


def take_images(models: Iterable[str]) -> bool:
    """Return whether any of the models takes images, which lie in memory one way or another and are convolved."""
    return any(name in MODELS and SIZE_UNITS[MODELS[name].task] == "px" for name in models)


def name_cell(cell: Cell) -> str:
    """Return `conv6 train, GPU, batch 64, 224 px, fp32, TensorFlow graph`, as a report of its run calls the cell.

    Its precision is named also where the report leaves it out, as all of its cells have the same; classes, the seed and
    how long is measured are not.
    """
    fields = cell.model_dump() | {"neighbour": describe_neighbour(cell)}
    optional = ["precision", "num_gpus", *(["data_dir"] if cell.data_dir is not None else [])]
    return f"{name_work(fields, optional)}, {name_program(fields)}"


def name_work(fields: Fields, optional: Iterable[str] = (), *, in_panel: bool = False) -> str:
    """Return what was done on which device: `conv6 train, GPU, batch 64, 224 px, 4 tenants by MPS, fp32`.

    `fields`: `model`, `phase`, `input_size`, `batch_size` or `batch_per_gpu`, and those of the others that are to be
    named. `optional`: those of OPTIONAL_FIELDS among them; a single GPU is not named. `in_panel`: without model, phase,
    device and size, which stand above it.
    """
    batch = f"batch {fields['batch_size']}" if "batch_size" in fields else f"batch {fields['batch_per_gpu']} per GPU"
    named = [describe_field(name, fields[name]) for name in optional if (name, fields[name]) != ("num_gpus", 1)]
    work = [f"{fields['model']} {fields['phase']}", *name_device(fields), batch, name_size(fields)]
    return ", ".join([*([batch] if in_panel else work), *name_sharing(fields), *named])


def name_program(fields: Fields) -> str:
    framework = [FRAMEWORK_NAMES[fields["framework"]]] if "framework" in fields else []
    return " ".join([*framework, *([fields["mode"]] if "mode" in fields else [])])


def name_device(fields: Fields) -> list[str]:
    return [DEVICE_NAMES[fields["device"]]] if "device" in fields else []


def name_size(fields: Fields) -> str:
    """Return `224 px`, `128 tokens`."""
    return f"{fields['input_size']} {SIZE_UNITS[MODELS[fields['model']].task]}"


def count_tokens(fields: Fields) -> int:
    """Return the tokens of a sample, one sequence of a step: its prompt in prefill, one in decoding; of others 0."""
    return {"prefill": int(fields["input_size"]), "decode": 1}.get(fields["phase"], 0)


def name_sharing(fields: Fields) -> list[str]:
    """Return `4 tenants by MPS` and what the neighbours run; nothing for a cell that had its device to itself.

    Every name says it, whatever the other cells are: a cell with tenants must never pass for one without. Of a
    comparison that leaves one of the fields free, the sides say it.
    """
    number, sharing, neighbour = (fields.get(name) for name in ("tenants", "sharing", "neighbour"))
    is_alone = number == 1 and sharing in (None, WHOLE_DEVICE)
    named = [] if number is None or is_alone else [count_things(number, "tenant")]
    if named and sharing is not None and fields.get("device") != "cpu":
        named = [f"{named[0]} by {SHARING_NAMES[sharing]}"]
    return named if neighbour is None else [*named, f"beside {neighbour}"]


def describe_neighbour(cell: Cell) -> str | None:
    """Return what the other tenants of a cell run, `vgg16 train batch 64 size 224 fp32 eager`; None: the same as it.

    Equal texts stand for equal neighbours.
    """
    if cell.neighbour is None:
        return None
    other = cell.as_tenant(1)
    words = [other.model, other.phase, f"batch {other.batch_size} size {other.input_size}", other.precision, other.mode]
    if other.num_classes != cell.num_classes and other.num_classes is not None:
        words.append(f"{other.num_classes} classes")
    return " ".join(words)


def describe_field(name: str, value: Any) -> str:
    """Return a value of one of OPTIONAL_FIELDS as a name says it; None where the field has no value."""
    return ABSENT_FIELDS[name] if value is None else OPTIONAL_FIELDS[name].format(value)

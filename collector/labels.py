"""Name cells, pairs and hardware for people: what was done (workload) and with what (variant)."""

from collections.abc import Iterable

import pandas as pd

from bench.registry import FRAMEWORKS, MODELS
from collector.results.cells import SHARING_FIELDS, WHOLE_DEVICE
from collector.results.frames import Row, list_rows

FRAMEWORK_NAMES: dict[str, str] = {name: framework.label for name, framework in FRAMEWORKS.items()}
DEVICE_NAMES = {"cpu": "CPU", "gpu": "GPU"}
PHASE_NAMES = {"train": "training", "infer": "inference"}
# What `input_size` counts, by the task of the model.
SIZE_UNITS = {
    "image-classification": "px",
    "image-translation": "px",
    "text-classification": "tokens",
    "matrix-product": "rows",
}
# Fields that a workload's name holds only where the rows vary them, and how they are written.
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
ABSENT_FIELDS = {"num_classes": "no classes", "data_dir": "synthetic data"}
MODE_WORDS = {
    "eager": "operation by operation",
    "graph": "TensorFlow's graph (tf.function), without XLA",
    "unfused": "the graph without TensorFlow's remapper, which fuses kernels",
    "fused-norm": "the graph with each batch norm as one operation",
    "compiled": "torch.compile in PyTorch, XLA in TensorFlow and JAX",
}
"""What a mode is, in words."""
PRECISION_WORDS = {
    "fp32": "float32, TF32 switched off",
    "tf32": "float32 with matrix products and convolutions in TF32",
    "fp16": "training in mixed precision with float16, inference with weights of float16",
    "bf16": "training in mixed precision with bfloat16, inference with weights of bfloat16",
}
"""What a precision is, in words."""
SHARING_NAMES = {"time-slicing": "time-slicing", "mps": "MPS", "mig": "MIG"}


def label_workloads(frame: pd.DataFrame) -> list[str]:
    """Return a name per row for what was done on which device: `conv6 train, CPU, batch 64, 32 px`.

    Fields that `frame` lacks, and those of OPTIONAL_FIELDS that all rows of a model share, are left out.
    """
    if frame.empty:
        return []
    present = [name for name in OPTIONAL_FIELDS if name in frame]
    counts = frame.groupby("model")[present].nunique(dropna=False)
    varying = {model: [name for name in present if counts.loc[model, name] > 1] for model in counts.index}
    columns = (
        *("model", "phase", "device", "batch_size", "batch_per_gpu", "input_size"),
        *SHARING_FIELDS,
        *OPTIONAL_FIELDS,
    )
    return [_describe_workload(row, varying[row["model"]]) for row in _list_rows(frame, columns)]


def label_panels(frame: pd.DataFrame) -> list[str]:
    """Return the broad kind of work per row: `conv6 train, GPU, 32 px`, without the device where `frame` has none."""
    return [
        ", ".join([f"{row['model']} {row['phase']}", *_name_device(row), _name_size(row)]) for row in list_rows(frame)
    ]


def label_variants(frame: pd.DataFrame) -> list[str]:
    """Return a name per row for what did it: framework and mode, and the environment where a cell ran in several."""
    columns = ("framework", "mode", "num_environments", "environment_id")
    return [_describe_variant(row) for row in _list_rows(frame, columns)]


def add_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `frame` with the columns workload, variant and label (both in one line), which tell its cells apart."""
    workloads, variants = label_workloads(frame), label_variants(frame)
    labels = [f"{workload}, {variant}" for workload, variant in zip(workloads, variants, strict=True)]
    return frame.assign(workload=workloads, variant=variants, label=labels)


def label_shared(pairs: pd.DataFrame) -> list[str]:
    """Return a name per row of a comparison for what both sides share."""
    rows = zip(label_workloads(pairs), _list_rows(pairs, ("framework", "mode")), strict=True)
    return [", ".join([workload, *_name_variant(row)]) for workload, row in rows]


def _list_rows(frame: pd.DataFrame, columns: Iterable[str]) -> list[Row]:
    """Return the rows with those of the columns that `frame` has: a row of all of them is expensive to make."""
    return list_rows(frame[[name for name in dict.fromkeys(columns) if name in frame]])


def label_hardware(cpu_model: str | None, num_threads: int | None) -> str:
    """Return `CPU model, 2 threads`, without what is not known."""
    threads = "" if pd.isna(num_threads) else f"{num_threads} thread{'s' if num_threads != 1 else ''}"
    return ", ".join(str(part) for part in (cpu_model, threads) if not pd.isna(part) and part)


def count_gpus(number: int) -> str:
    """Return `1 GPU`, `4 GPUs`."""
    return f"{number} GPU{'' if number == 1 else 's'}"


def count_tenants(number: int) -> str:
    """Return `1 tenant`, `4 tenants`."""
    return f"{number} tenant{'' if number == 1 else 's'}"


def _describe_workload(row: Row, varying: list[str]) -> str:
    batch = f"batch {row['batch_size']}" if "batch_size" in row else f"batch {row['batch_per_gpu']} per GPU"
    optional = [_describe_field(name, row[name]) for name in varying if (name, row[name]) != ("num_gpus", 1)]
    named = [f"{row['model']} {row['phase']}", *_name_device(row), batch, _name_size(row)]
    return ", ".join([*named, *_name_sharing(row), *optional])


def _name_sharing(row: Row) -> list[str]:
    """Return `4 tenants by MPS` and what the neighbours run; nothing for a cell that had its device to itself.

    Every row says it, whatever the others are: a cell with tenants must never pass for one without. Of a comparison
    that leaves one of the fields free, the sides say it.
    """
    number, sharing, neighbour = (row.get(name) for name in SHARING_FIELDS)
    named = [] if number is None or (number == 1 and sharing in (None, WHOLE_DEVICE)) else [count_tenants(number)]
    if named and sharing is not None and row.get("device") != "cpu":
        named = [f"{named[0]} by {SHARING_NAMES[sharing]}"]
    return named if neighbour is None or pd.isna(neighbour) else [*named, f"beside {neighbour}"]


def _name_device(row: Row) -> list[str]:
    return [DEVICE_NAMES[row["device"]]] if "device" in row else []


def _name_size(row: Row) -> str:
    return f"{row['input_size']} {SIZE_UNITS[MODELS[row['model']].task]}"


def _describe_field(name: str, value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]
        return ABSENT_FIELDS[name]
    return OPTIONAL_FIELDS[name].format(value)


def _describe_variant(row: Row) -> str:
    name = " ".join(_name_variant(row))
    return f"{name} [{row['environment_id']}]" if row.get("num_environments", 1) > 1 else name


def _name_variant(row: Row) -> list[str]:
    """Return framework and mode in one text, as far as the row has them."""
    words = [FRAMEWORK_NAMES[row["framework"]]] if "framework" in row else []
    words += [row["mode"]] if "mode" in row else []
    return [" ".join(words)] if words else []

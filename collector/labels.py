"""Rows with the fields of cells come in, names for people go out: what was done (workload) and with what (variant)."""

import pandas as pd

from collector.frames import Row, list_rows

FRAMEWORK_NAMES = {"pytorch": "PyTorch", "tensorflow": "TensorFlow"}
DEVICE_NAMES = {"cpu": "CPU", "gpu": "GPU"}
# Fields that a workload's name holds only where the rows vary them, and how they are written.
OPTIONAL_FIELDS = {
    "precision": "{}",
    "num_classes": "{} classes",
    "seed": "seed {}",
    "num_warmup_steps": "{} warm-up steps",
    "max_warmup_seconds": "{:g} s warm-up",
    "num_steps": "{} steps",
    "min_seconds": "{:g} s window",
}


def label_workloads(frame: pd.DataFrame) -> list[str]:
    """Return a name per row for what was done on which device: `conv6 train, CPU, batch 64, 32 px`.

    Fields that `frame` lacks, and those of OPTIONAL_FIELDS that all rows of a model share, are left out.
    """
    models = frame.groupby("model")
    varying = [name for name in OPTIONAL_FIELDS if name in frame and (models[name].nunique() > 1).any()]
    return [_describe_workload(row, varying) for row in list_rows(frame)]


def label_variants(frame: pd.DataFrame) -> list[str]:
    """Return a name per row for what did it: framework and mode, and the environment where a cell ran in several."""
    return [_describe_variant(row) for row in list_rows(frame)]


def add_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `frame` with the columns workload, variant and label (both in one line), which tell its cells apart."""
    workloads, variants = label_workloads(frame), label_variants(frame)
    labels = [f"{workload}, {variant}" for workload, variant in zip(workloads, variants, strict=True)]
    return frame.assign(workload=workloads, variant=variants, label=labels)


def label_pairs(pairs: pd.DataFrame) -> list[str]:
    """Return a name per row of a comparison: the workload and the modes, or the variant where devices are compared."""
    workloads = label_workloads(pairs)
    if "mode_tensorflow" not in pairs:
        return [f"{workload}, {variant}" for workload, variant in zip(workloads, label_variants(pairs), strict=True)]
    modes = zip(workloads, pairs["mode_tensorflow"], pairs["mode_pytorch"], strict=True)
    return [f"{workload}: {over} / {under}" for workload, over, under in modes]


def _describe_workload(row: Row, varying: list[str]) -> str:
    device = [DEVICE_NAMES[row["device"]]] if "device" in row else []
    optional = [OPTIONAL_FIELDS[name].format(row[name]) for name in varying]
    parts = [
        f"{row['model']} {row['phase']}",
        *device,
        f"batch {row['batch_size']}",
        f"{row['input_size']} px",
        *optional,
    ]
    return ", ".join(parts)


def _describe_variant(row: Row) -> str:
    name = f"{FRAMEWORK_NAMES[row['framework']]} {row['mode']}"
    return f"{name} [{row['environment_id']}]" if row.get("num_environments", 1) > 1 else name

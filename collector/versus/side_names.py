"""Name the two sides of a pair by what differs between their cells, as the tables of the report do."""

from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES
from collector.ratio_verdicts import describe_ratio
from collector.results.cells import PROTOCOL_FIELDS
from collector.results.frames import CELL_COLUMNS
from collector.statistics import Estimate
from collector.versus.metrics import Metric
from collector.versus.selections import describe_value
from collector.versus.sides import CellSide


def describe_longer_side(a: CellSide, b: CellSide, ratio: Estimate, metric: Metric) -> str:
    """Return `TensorFlow graph takes 21 % longer`; `ratio`: a time of B over that of A."""
    name_a, name_b = name_sides(a, b)
    words = describe_ratio(ratio, subject=name_b, reference=name_a)
    return f"{words} for a sample" if metric.is_per_sample else words


def name_sides(a: CellSide, b: CellSide) -> tuple[str, str]:
    """Return the names of both sides: `PyTorch eager` and `JAX compiled`; `A` and `B` where the cells are equal."""
    fields = [name for name in CELL_COLUMNS if name not in PROTOCOL_FIELDS]
    differing = [name for name in fields if a.cell[name] != b.cell[name]]
    if not differing:
        return "A", "B"
    first, second = (", ".join(_list_words(side, differing)) for side in (a, b))
    return first, second


def _list_words(side: CellSide, differing: list[str]) -> list[str]:
    cell, words = side.cell, []
    for name in differing:
        value = cell[name]
        if name == "framework":
            words.append(f"{FRAMEWORK_NAMES.get(value, value)} {cell['mode']}")
        elif name == "device":
            words.append(DEVICE_NAMES.get(value, str(value)))
        elif name in ("precision", "phase", "model"):
            words.append(str(value))
        elif name == "mode":
            words += [] if "framework" in differing else [str(value)]
        elif name == "batch_size":
            words.append(f"batch {value}")
        else:
            words.append(f"{name} {describe_value(value)}")
    return words

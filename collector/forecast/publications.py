"""Describe the tables that others publish: their columns, units and whom to name for them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A column with a value for each release."""

    columns: tuple[str, ...]
    """Its names in the published file, newest first."""
    words: str
    unit: str
    scale: float = 1.0
    """What a published value is multiplied by to be in `unit`."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A published table, recognised by its columns."""

    marks: frozenset[str]
    """Columns that only this table has."""
    name: str
    """The column that names a release."""
    date: str
    quantities: Mapping[str, Quantity]
    """By the word for `--quantity`; the first is the default."""
    attribution: str


_EPOCH = "Epoch AI, '{title}', https://{page}, CC BY"

# Epoch AI asks to be named in this form: https://epoch.ai/data/notable-ai-models-documentation, section Citation, and
# https://epoch.ai/data/machine-learning-hardware (both read in November 2026). Memory had another column until 2025.
EPOCH_HARDWARE = Publication(
    marks=frozenset({"Hardware name", "Release date"}),
    name="Hardware name",
    date="Release date",
    quantities={
        "memory": Quantity(
            columns=("Memory (bytes)", "Memory size per board (Byte)"),
            words="memory of one accelerator",
            unit="GB",
            scale=1e-9,
        ),
        "release-price": Quantity(columns=("Release price (USD)",), words="price of one accelerator", unit="USD"),
        "fp32-rate": Quantity(
            columns=("FP32 (single precision) performance (FLOP/s)",),
            words="FP32 rate of one accelerator",
            unit="FLOP/s",
        ),
        "tensor-rate": Quantity(
            columns=("Tensor-FP16/BF16 performance (FLOP/s)",),
            words="16-bit tensor rate of one accelerator",
            unit="FLOP/s",
        ),
    },
    attribution=_EPOCH.format(
        title="Data on Machine Learning Hardware", page="epoch.ai/data/machine-learning-hardware"
    ),
)
EPOCH_MODELS = Publication(
    marks=frozenset({"Publication date", "Training compute (FLOP)"}),
    name="Model",
    date="Publication date",
    quantities={
        "training-compute": Quantity(
            columns=("Training compute (FLOP)",), words="training compute of one model", unit="FLOP"
        ),
        "parameters": Quantity(columns=("Parameters",), words="parameters of one model", unit="parameters"),
    },
    attribution=_EPOCH.format(
        title="Parameter, Compute and Data Trends in Machine Learning", page="epoch.ai/data/notable-ai-models"
    ),
)
EPOCH_PRICES = Publication(
    marks=frozenset({"Price date", "Price per chip-hour (on-demand)"}),
    name="Hardware model",
    date="Price date",
    quantities={
        "price-per-hour": Quantity(
            columns=("Price per chip-hour (on-demand)",), words="price of one chip on demand", unit="USD an hour"
        ),
        "purchase-price": Quantity(columns=("Price (hardware purchase)",), words="price of one chip", unit="USD"),
    },
    # Published beside the code of arXiv 2405.21015, as `data/Hardware prices.csv`; the licence is that of Epoch's site.
    attribution=_EPOCH.format(
        title="The rising costs of training frontier AI models, hardware prices",
        page="github.com/epoch-research/training-cost-trends",
    ),
)
GPU_TABLE = Publication(
    marks=frozenset({"release", "memory_gb", "segment"}),
    name="name",
    date="release",
    quantities={"memory": Quantity(columns=("memory_gb",), words="memory of one GPU", unit="GB")},
    attribution="",
)
"""The form of this project's own table of GPUs (docs/forecast.md)."""
PUBLICATIONS = (GPU_TABLE, EPOCH_HARDWARE, EPOCH_MODELS, EPOCH_PRICES)


def recognize_publication(columns: list[str]) -> Publication | None:
    """Return whose table has these columns; None if it is nobody's that is known."""
    return next((each for each in PUBLICATIONS if each.marks <= set(columns)), None)

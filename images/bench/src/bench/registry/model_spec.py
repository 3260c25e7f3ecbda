"""What the registry holds of a model: sizes, training settings, reference numbers and the case of its comparison.

Its code is a function per dialect: `build_NAME(cell)` in `bench.models.torch` and `bench.models.keras`,
`count_NAME(cell)` in `bench.models.flops`, NAME with underscores for hyphens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

Dialect = Literal["torch", "keras", "flops"]
Phase = Literal["train", "infer"]
Task = Literal["image-classification", "text-classification", "image-translation", "matrix-product"]
DataKind = Literal["cifar10", "image-folders"]
# Of Keras, in which the definitions are compared with PyTorch's: see MirrorCase.
MirrorMode = Literal["graph", "eager", "compiled"]
MirrorPrecision = Literal["float32", "float64"]

BENCH_FOLDER = Path(__file__).parents[1]
RECIPE = "CONTRIBUTING.md, 'Add a model'"


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Numbers of a model at one size, found by others or by another method than the code that they check."""

    input_size: int
    num_classes: int | None
    num_parameters: tuple[int, ...]
    """The parameters of each network, the one that infers first."""
    giga_macs: float
    """Multiply-adds of a forward pass of the first network per sample, in 10^9."""
    source: str


@dataclass(frozen=True, kw_only=True)
class MirrorCase:
    """The small size at which the definitions of a model are compared: outputs, losses, gradients, Adam's updates.

    PyTorch's weights are copied to Keras. In float32 rounding decides single ReLUs, maxima and signs, and with them
    gradients: deep models without batch norm need wider tolerances there, and prove themselves in float64.
    """

    input_size: int
    num_classes: int | None
    batch_size: int = 4
    modes: tuple[MirrorMode, ...] = ("graph", "compiled")
    precisions: tuple[MirrorPrecision, ...] = ("float32", "float64")
    """float64 costs memory, twice that of float32."""
    gradient_tolerance: float = 1e-4
    """In float32: the error of each gradient over its norm."""
    min_share_alike: float = 0.95
    """The least share of the gradients other than zero that has to agree to 0.1 %."""
    loss_tolerances: Mapping[MirrorPrecision, float | None] = field(
        default_factory=lambda: {"float32": 0.05, "float64": 1e-3}
    )
    """The relative error of the losses of the second and third step; None: not compared."""
    update_tolerances: Mapping[MirrorPrecision, float | None] = field(
        default_factory=lambda: {"float32": 0.05, "float64": 0.01}
    )
    """The error of all updates after three steps over the way gone, where gradients agree; None: not compared."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One workload."""

    description: str
    """What it is, for people."""
    task: Task
    input_size: int
    """The default height and width in pixels, tokens of a text, rows of a matrix."""
    num_classes: int | None
    """The default width of the last layer; None: it has no classes."""
    min_input_size: int = 8
    input_size_multiple: int = 1
    phases: tuple[Phase, ...] = ("train", "infer")
    learning_rate: float = 1e-3
    """Adam's."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Adam's."""
    has_batch_norm: bool = False
    """Whether it normalises batches: the mode `fused-norm` is for these models."""
    max_autotune: bool = False
    """Whether `compiled` PyTorch tries every kernel that it knows for inference on a GPU (torch.compile's
    `max_autotune`): where that gains and compiling stays under a minute. docs/performance.md has what was measured."""
    data: DataKind | None = None
    """What a `data_dir` of this model holds; None: it runs on synthetic data only."""
    references: tuple[Reference, ...]
    """One of them at the default size."""
    mirror: MirrorCase

    def find_reference(self) -> Reference | None:
        """Return the reference numbers at the default size; None where the entry has none."""
        size = (self.input_size, self.num_classes)
        return next((one for one in self.references if (one.input_size, one.num_classes) == size), None)


def name_definition(model: str, dialect: Dialect) -> str:
    """Return the function of `bench.models.DIALECT` that defines a model."""
    return f"{'count' if dialect == 'flops' else 'build'}_{model.replace('-', '_')}"


def list_gaps(model: str, spec: ModelSpec, folder: Path = BENCH_FOLDER) -> list[str]:
    """Return a message for everything that a model lacks: functions in files below `folder`, that of `bench`;
    numbers."""
    gaps = []
    for dialect in get_args(Dialect):
        path, function = folder / "models" / f"{dialect}.py", f"{name_definition(model, dialect)}(cell"
        if f"\ndef {function}" not in path.read_text():
            gaps.append(f"model '{model}': there is no {function}) in {path}: see {RECIPE}")
    if spec.find_reference() is None:
        size = f"input_size={spec.input_size}, num_classes={spec.num_classes}"
        gaps.append(f"model '{model}': its entry has no Reference({size}, ...), its default size: see {RECIPE}")
    for reference in spec.references:
        if not reference.source:
            gaps.append(f"model '{model}': its Reference at {reference.input_size} has no source: see {RECIPE}")
    return gaps

"""The models that a cell can name: name in, its shape, training settings and definitions out. Imports no framework."""

from dataclasses import dataclass
from typing import Literal

Definition = Literal["torch", "keras"]


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One workload of the study.

    `input_size` is the default height and width in pixels, `num_classes` the default width of the last layer,
    `learning_rate` the step of Adam. `definitions` maps a dialect to its module, which offers `build(cell)`.
    """

    input_size: int
    num_classes: int
    learning_rate: float
    definitions: dict[Definition, str]


def _spec(name: str, *, input_size: int, num_classes: int, learning_rate: float) -> ModelSpec:
    definitions: dict[Definition, str] = {
        "torch": f"bench.models.torch.{name}",
        "keras": f"bench.models.keras.{name}",
    }
    return ModelSpec(
        input_size=input_size, num_classes=num_classes, learning_rate=learning_rate, definitions=definitions
    )


# Conv6: Adam at 3e-4 as in Frankle and Carbin (arXiv 1803.03635, figure 2). ResNet18: Adam at 1e-3 as in the study.
MODELS: dict[str, ModelSpec] = {
    "conv6": _spec("conv6", input_size=32, num_classes=10, learning_rate=3e-4),
    "resnet18": _spec("resnet18", input_size=224, num_classes=1000, learning_rate=1e-3),
}

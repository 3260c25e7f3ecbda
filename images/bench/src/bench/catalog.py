"""The models that a cell can name: name in, task, sizes and training settings out. Imports no framework."""

from dataclasses import dataclass
from typing import Literal

Dialect = Literal["torch", "keras", "work"]
Task = Literal["image-classification", "text-classification", "image-translation", "matrix-product"]
DataKind = Literal["cifar10", "image-folders"]


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One workload of the study.

    `module` is the name of its file in `bench.models.torch` and `.keras`, which offer `build(cell)`, and in `.work`,
    which offers `count(cell)`. `input_size` is the default height and width in pixels (tokens of a text, rows of a
    matrix), `num_classes` the default width of the last layer, None where there are no classes. `learning_rate` and
    `betas` are Adam's. `data`: what a `data_dir` of this model holds; None: it runs on synthetic data only.
    """

    module: str
    task: Task
    input_size: int
    num_classes: int | None
    min_input_size: int = 8
    input_size_multiple: int = 1
    phases: tuple[Literal["train", "infer"], ...] = ("train", "infer")
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    data: DataKind | None = None

    def locate(self, dialect: Dialect) -> str:
        """Return the module of the model's definition in `dialect`."""
        return f"bench.models.{dialect}.{self.module}"


# Adam's rates: Conv6 3e-4 as in Frankle and Carbin (arXiv 1803.03635, figure 2), CycleGAN 2e-4 as in Zhu et al. (arXiv
# 1703.10593, section 4), its betas as in their code; the others 1e-3 as in the study.
MODELS: dict[str, ModelSpec] = {
    "conv6": ModelSpec(
        module="conv6", task="image-classification", input_size=32, num_classes=10, learning_rate=3e-4, data="cifar10"
    ),
    "vgg16": ModelSpec(
        module="vgg16",
        task="image-classification",
        input_size=224,
        num_classes=1000,
        min_input_size=32,  # five poolings by two
        data="cifar10",
    ),
    "resnet18": ModelSpec(
        module="resnet18", task="image-classification", input_size=224, num_classes=1000, data="cifar10"
    ),
    "resnet18-cifar": ModelSpec(
        module="resnet18_cifar", task="image-classification", input_size=32, num_classes=10, data="cifar10"
    ),
    "cyclegan": ModelSpec(
        module="cyclegan",
        task="image-translation",
        input_size=256,
        num_classes=None,
        min_input_size=24,  # below, an instance norm of the discriminator has a single position to normalise
        input_size_multiple=4,  # halved and doubled twice, the generator's images keep their size
        learning_rate=2e-4,
        betas=(0.5, 0.999),
        data="image-folders",
    ),
    "matmul": ModelSpec(module="matmul", task="matrix-product", input_size=10_000, num_classes=None, phases=("infer",)),
    "text-classifier": ModelSpec(module="text_classifier", task="text-classification", input_size=128, num_classes=2),
}

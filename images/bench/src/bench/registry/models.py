"""The models that a cell can name: one entry each. CONTRIBUTING.md, "Add a model", says what else a model needs.

Its code is a function per dialect: `build_NAME(cell)` in `PACKAGE.torch` and `PACKAGE.keras`, `count_NAME(cell)` in
`PACKAGE.flops`, NAME with underscores for hyphens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bench.registry.frameworks import Framework, ModelDialect

Dialect = Literal["torch", "keras", "flops"]
Phase = Literal["train", "infer", "prefill", "decode"]
Task = Literal["image-classification", "text-classification", "image-translation", "matrix-product", "text-generation"]
DataKind = Literal["cifar10", "image-folders"]
MAX_INPUT_SIZE = 131_072


@dataclass(frozen=True)
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
class Decoder:
    """The layers of a language model of Llama's shape (arXiv 2407.21783, table 3)."""

    width: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    """Heads of keys and values, each shared by `num_heads / num_kv_heads` heads of queries."""
    mlp_width: int
    vocabulary_size: int
    is_tied: bool
    """Whether the embedding's weights are those of the last layer too."""

    @property
    def head_width(self) -> int:
        return self.width // self.num_heads

    @property
    def kv_width(self) -> int:
        return self.num_kv_heads * self.head_width

    @property
    def num_layer_weights(self) -> int:
        """Of the matrices of one layer."""
        return (2 * self.width + 2 * self.kv_width + 3 * self.mlp_width) * self.width

    def count_cached_values(self, num_tokens: int) -> int:
        """Return how many values the cache holds: a key and a value for each layer, position and head of the keys."""
        return 2 * self.num_layers * self.kv_width * num_tokens


# The configurations of meta-llama/Llama-3.2-1B and Llama-3.1-8B, without the scaling of positions beyond 8,192.
DECODERS = {
    "llama-tiny": Decoder(
        width=256, num_layers=4, num_heads=8, num_kv_heads=4, mlp_width=768, vocabulary_size=8_192, is_tied=True
    ),
    "llama-1b": Decoder(
        width=2048, num_layers=16, num_heads=32, num_kv_heads=8, mlp_width=8192, vocabulary_size=128_256, is_tied=True
    ),
    "llama-8b": Decoder(
        width=4096, num_layers=32, num_heads=32, num_kv_heads=8, mlp_width=14336, vocabulary_size=128_256, is_tied=False
    ),
}


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One workload."""

    description: str
    """What it is, for people."""
    package: str = "bench.models"
    """Where its code is: a module for each of its dialects, and `flops`."""
    definition: str | None = None
    """The name that its functions have; None: its own. Models that differ in their sizes alone share them."""
    dialects: tuple[ModelDialect, ...] = ("torch", "keras")
    task: Task
    input_size: int
    """The default height and width in pixels, tokens of a text or in a cache, rows of a matrix."""
    num_classes: int | None
    """The default width of the last layer; None: it has no classes."""
    min_input_size: int = 8
    input_size_multiple: int = 1
    max_input_size: int = MAX_INPUT_SIZE
    without: Mapping[Framework, str] = field(default_factory=dict)
    """Frameworks of its dialects that do not run it, and why."""
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


def name_definition(model: str, dialect: Dialect) -> str:
    name = MODELS[model].definition or model
    return f"{'count' if dialect == 'flops' else 'build'}_{name.replace('-', '_')}"


WITHOUT_TENSORFLOW: dict[Framework, str] = {
    "tensorflow": "Keras has no fused attention on TensorFlow, so the whole matrix of scores would be measured"
}


def make_decoder(description: str, *, input_size: int, max_input_size: int, reference: Reference) -> ModelSpec:
    """Return the entry of a language model with random weights, measured by its prefill and its decoding."""
    return ModelSpec(
        description=description,
        definition="llama",
        task="text-generation",
        input_size=input_size,
        num_classes=None,
        min_input_size=2,
        max_input_size=max_input_size,
        without=WITHOUT_TENSORFLOW,
        phases=("prefill", "decode"),
        references=(reference,),
    )


# Adam's rates: Conv6 3e-4 as in Frankle and Carbin (arXiv 1803.03635, figure 2), CycleGAN 2e-4 as in Zhu et al. (arXiv
# 1703.10593, section 4), its betas as in their code; the others 1e-3 as in the study.
MODELS: dict[str, ModelSpec] = {
    "conv6": ModelSpec(
        description="Conv-6 of Frankle and Carbin",
        task="image-classification",
        input_size=32,
        num_classes=10,
        learning_rate=3e-4,
        max_autotune=True,
        data="cifar10",
        references=(
            Reference(32, 10, (2_262_602,), 0.1539, "summed over the layers of arXiv 1803.03635, figure 2"),
            Reference(224, 10, (52_594_250,), 7.54, "summed over the same layers"),
        ),
    ),
    "vgg16": ModelSpec(
        description="VGG16, configuration D of arXiv 1409.1556",
        task="image-classification",
        input_size=224,
        num_classes=1000,
        min_input_size=32,  # five poolings by two
        data="cifar10",
        references=(
            Reference(224, 1000, (138_357_544,), 15.47, "torchvision 0.29, VGG16_Weights.IMAGENET1K_V1.meta"),
            Reference(224, 10, (134_301_514,), 15.47, "the same, less 990 rows of the last layer's 4,097 weights"),
            Reference(
                32,
                10,
                (134_301_514,),
                # 15.3466 GMAC of convolutions, which shrink with the area, and 0.1196 GMAC of dense layers.
                15.3466 / 49 + 0.1196,
                "the same: at any size the dense layers take 7 x 7 values",
            ),
        ),
        # At 64 px the side of its feature map is 2, averaged to 7. In float64 its 134 million weights would cost 6 GB.
    ),
    "resnet18": ModelSpec(
        description="ResNet18 with the stem for ImageNet, arXiv 1512.03385",
        task="image-classification",
        input_size=224,
        num_classes=1000,
        has_batch_norm=True,
        data="cifar10",
        references=(
            Reference(224, 1000, (11_689_512,), 1.814, "torchvision 0.29, ResNet18_Weights.IMAGENET1K_V1.meta"),
            Reference(224, 10, (11_181_642,), 1.814, "the same, less 990 rows of the last layer's 513 weights"),
        ),
    ),
    "resnet18-cifar": ModelSpec(
        description="ResNet18 with the stem for CIFAR, arXiv 1512.03385, section 4.2",
        task="image-classification",
        input_size=32,
        num_classes=10,
        has_batch_norm=True,
        data="cifar10",
        references=(
            Reference(32, 10, (11_173_962,), 0.555, "summed over ResNet18's layers with a 3x3 stem and no pooling"),
        ),
    ),
    "resnet50": ModelSpec(
        description="ResNet50 v1.5: the stride is that of the 3x3 convolutions",
        task="image-classification",
        input_size=224,
        num_classes=1000,
        has_batch_norm=True,
        data="cifar10",
        references=(
            Reference(224, 1000, (25_557_032,), 4.089, "torchvision 0.29, ResNet50_Weights.IMAGENET1K_V1.meta"),
        ),
        # Fifty untrained layers enlarge rounding by 10^5 in the gradients of float32, then from step to step. In
        # float64 the gradients agree to 10^-12; what parts the later steps are Keras's float32 betas.
    ),
    "vit-b-16": ModelSpec(
        description="ViT-B/16, arXiv 2010.11929, table 1",
        task="image-classification",
        input_size=224,
        num_classes=1000,
        min_input_size=16,
        input_size_multiple=16,  # a patch
        data="cifar10",
        references=(
            Reference(224, 1000, (86_567_656,), 17.564, "torchvision 0.29, ViT_B_16_Weights.IMAGENET1K_V1.meta"),
        ),
        # In float64 its 86 million weights would cost 4 GB.
    ),
    "cyclegan": ModelSpec(
        description="CycleGAN: two generators, two discriminators; `infer`: one generator",
        task="image-translation",
        input_size=256,
        num_classes=None,
        min_input_size=24,  # below, an instance norm of the discriminator has a single position to normalise
        input_size_multiple=4,  # halved and doubled twice, the generator's images keep their size
        learning_rate=2e-4,
        betas=(0.5, 0.999),
        data="image-folders",
        references=(
            Reference(
                256,
                None,
                (11_378_179, 11_378_179, 2_764_737, 2_764_737),
                49.55,
                "summed over the layers of arXiv 1703.10593, section 7.2, and the authors' code; transposed "
                "convolutions at the size of their inputs",
            ),
        ),
        # Its losses jump in the first steps, in float32 too far to compare the updates.
    ),
    "matmul": ModelSpec(
        description="the product of two square matrices; `infer` only",
        task="matrix-product",
        input_size=10_000,
        num_classes=None,
        phases=("infer",),
        references=(Reference(10_000, None, (0,), 1000.0, "10,000^3 products"),),
    ),
    "text-classifier": ModelSpec(
        description="a small Transformer encoder of this project",
        task="text-classification",
        input_size=128,
        num_classes=2,
        references=(
            Reference(
                128,
                2,
                # 20,000 tokens and 128 positions of 256; four layers of 789,760; the last norm; the head.
                (20_128 * 256 + 4 * 789_760 + 512 + 2 * 257,),
                # Per layer and token 4 x 256^2 and 2 x 256 x 1024 weights, attention over 128 tokens twice.
                (4 * 128 * (4 * 256**2 + 2 * 256 * 1024 + 2 * 128 * 256) + 256 * 2) / 1e9,
                "by hand from its definition in `bench.models.torch`",
            ),
        ),
    ),
    "llama-tiny": make_decoder(
        "a decoder of Llama's shape for CPUs and tests: 4 layers of 256",
        input_size=256,
        max_input_size=2_048,
        reference=Reference(
            256,
            None,
            # The embedding, which is the last layer too; four layers, each two norms, QKV, projection and SwiGLU.
            (8_192 * 256 + 4 * (2 * 256 + 256 * (512 + 256 + 3 * 768)) + 256,),
            # Per layer the weights of 256 tokens, each of which attends to itself and those before; the last logits.
            (4 * (256 * 256 * (512 + 256 + 3 * 768) + 2 * 256 * 256 * 257 / 2) + 8_192 * 256) / 1e9,
            "by hand from its definition in `bench.models.torch`",
        ),
    ),
    "llama-1b": make_decoder(
        "the shape of Llama 3.2 1B with random weights",
        input_size=2_048,
        max_input_size=131_072,
        reference=Reference(
            2_048,
            None,
            (1_235_814_400,),
            2130.6,
            "prefill, summed over the layers of meta-llama/Llama-3.2-1B's config.json",
        ),
    ),
    "llama-8b": make_decoder(
        "the shape of Llama 3.1 8B with random weights",
        input_size=2_048,
        max_input_size=131_072,
        reference=Reference(
            2_048,
            None,
            (8_030_261_248,),
            14844.2,
            "prefill, summed over the layers of meta-llama/Llama-3.1-8B's config.json",
        ),
    ),
}

"""Counts the floating-point operations and minimum bytes of one step by analysis. Imports no framework.

What is counted: convolutions and matrix products, a multiply-add as two operations, padded positions included, as
PyTorch's FlopCounterMode counts them; not norms, activations, losses and optimisers, which a device bound by arithmetic
does beside them. Training: forward, the gradients of the weights, and those of each layer's input where something in
front of it learns (nothing is in front of a first layer).

Beside that count stands the least: what the best known algorithm of each layer needs (`find_saving`). Rates and
shares are those of the first count; whether a time is possible at all is judged by the second.

What is counted as bytes: what has to cross the device's memory however good the caches are, each once: inference reads
weights and input and writes the output; training reads the input, and reads and writes weights and Adam's two moments
in float32. Activations and gradients need not cross. Inputs are counted in the cell's precision, token ids as 4 bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.models import find_definition
from bench.models.sizes import (
    CONV6_STAGES,
    DENSE_SIDE,
    GENERATOR_BLOCKS,
    PATCH_SIZE,
    RESNET18_BLOCKS,
    RESNET50_BLOCKS,
    TEXT_ENCODER,
    VGG16_STAGES,
    VIT_ENCODER,
    Encoder,
    ResidualBlock,
)
from bench.registry import DECODERS, EIGHT_BITS, ELEMENT_BYTES, MODELS
from bench.schema import Cell
from bench.tasks.inputs import VOCABULARY_SIZE

TOKEN_BYTES = 4
# A float32 weight and Adam's two moments of it, each read and written once per update.
TRAINING_BYTES_PER_PARAMETER = 3 * 2 * 4
# How many times fewer multiply-adds than counted the best known algorithm needs, for convolutions of stride 1: no
# library has such an algorithm for another stride. 3x3: Winograd's F(4x4, 3x3), with 36 products where the direct way
# takes 144 (A. Lavin, S. Gray, arXiv 1509.09308). cuDNN and oneDNN have it or F(2x2, 3x3), which saves 2.25, also for
# the gradients: that of the input is a convolution with 3x3 weights, that of the weights is F(3x3, 4x4). The transforms
# are not counted. Larger kernels: what FFT saves at most, in large tiles: one complex multiply-add, which is 4 real
# ones, for every two values of a tile instead of kernel^2 for every value (M. Mathieu et al., arXiv 1312.5851; N.
# Vasilache et al., arXiv 1412.7580; cuDNN's algorithms FFT and FFT_TILING). For 3x3, in tiles of 32, it saves 3.96.
WINOGRAD_SAVING = 4.0
FFT_SAVING_PER_KERNEL_VALUE = 1 / 2


@dataclass(frozen=True, kw_only=True)
class StepCost:
    """The least that one step has to compute and move on one device."""

    flops: int
    """Operations of direct convolutions and plain matrix products."""
    least_flops: int
    """The fewest that known algorithms need for the same results, at most `flops`."""
    min_bytes: int
    num_parameters: int
    """The parameters of all networks that take part in the step."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer: multiply-adds of its forward pass per sample, and its parameters."""

    macs: int
    num_parameters: int
    saving: float = 1.0
    """How many times fewer multiply-adds the best known algorithm needs."""

    @property
    def least_macs(self) -> int:
        return int(self.macs / self.saving)


def convolve(
    in_channels: int, out_channels: int, kernel_size: int, out_size: int, *, stride: int = 1, has_bias: bool = True
) -> Layer:
    num_weights = in_channels * out_channels * kernel_size**2
    return Layer(
        macs=num_weights * out_size**2,
        num_parameters=num_weights + has_bias * out_channels,
        saving=find_saving(kernel_size, stride),
    )


def find_saving(kernel_size: int, stride: int) -> float:
    """Return how many times fewer multiply-adds than a direct convolution a known algorithm needs, at least 1."""
    if stride != 1 or kernel_size == 1:
        return 1.0
    return WINOGRAD_SAVING if kernel_size == 3 else FFT_SAVING_PER_KERNEL_VALUE * kernel_size**2


def convolve_transposed(in_channels: int, out_channels: int, kernel_size: int, in_size: int) -> Layer:
    """Return a square transposed convolution with bias: every input value enters kernel_size^2 x out_channels products.

    That is what is computed. Counting kernel_size^2 x in_channels products for every output value, as for a plain
    convolution, gives stride^2 times as many, the rest of which multiply the zeros between the input's values.
    """
    num_weights = in_channels * out_channels * kernel_size**2
    return Layer(macs=num_weights * in_size**2, num_parameters=num_weights + out_channels)


def connect(in_features: int, out_features: int, *, num_positions: int = 1) -> Layer:
    num_weights = in_features * out_features
    return Layer(macs=num_weights * num_positions, num_parameters=num_weights + out_features)


def normalize(num_channels: int) -> Layer:
    return Layer(macs=0, num_parameters=2 * num_channels)


def compute_output_size(size: int, kernel_size: int, *, stride: int, padding: int) -> int:
    return (size + 2 * padding - kernel_size) // stride + 1


def make_cost(
    cell: Cell, *, macs: int, least_macs: int, num_parameters: int, input_bytes: int, num_outputs: int
) -> StepCost:
    """Return the cost of a step; `macs`, `least_macs`, `input_bytes` and `num_outputs` are those per sample."""
    element_bytes = ELEMENT_BYTES[cell.precision]
    if cell.phase == "train":
        weight_bytes, output_bytes = num_parameters * TRAINING_BYTES_PER_PARAMETER, 0
    else:
        weight_bytes, output_bytes = num_parameters * element_bytes, num_outputs * element_bytes
    return StepCost(
        flops=2 * macs * cell.batch_size,
        least_flops=2 * least_macs * cell.batch_size,
        min_bytes=weight_bytes + cell.batch_size * (input_bytes + output_bytes),
        num_parameters=num_parameters,
    )


def count_image_bytes(cell: Cell) -> int:
    return 3 * cell.input_size**2 * ELEMENT_BYTES[cell.precision]


def count_classifier(cell: Cell, layers: Sequence[Layer], num_features: int) -> StepCost:
    """Return the cost of a step of `layers` and a dense layer of `num_features` to the classes.

    In training, each weight's gradient sums over as many products as the forward pass, and so does each input's. The
    first layer's input is data, which needs no gradient.
    """
    assert cell.num_classes is not None
    layers = [*layers, connect(num_features, cell.num_classes)]

    def count(macs: list[int]) -> int:
        return sum(macs) if cell.phase == "infer" else 3 * sum(macs) - macs[0]

    is_text = MODELS[cell.model].task == "text-classification"
    return make_cost(
        cell,
        macs=count([layer.macs for layer in layers]),
        least_macs=count([layer.least_macs for layer in layers]),
        num_parameters=sum(layer.num_parameters for layer in layers),
        input_bytes=cell.input_size * TOKEN_BYTES if is_text else count_image_bytes(cell),
        num_outputs=cell.num_classes,
    )


def list_stages(cell: Cell, stages: Sequence[tuple[int, int]]) -> tuple[list[Layer], int]:
    """Return the layers of stages of 3x3 convolutions, and the side of what they give."""
    size, num_channels = cell.input_size, 3
    layers = []
    for width, num_convolutions in stages:
        for _ in range(num_convolutions):
            layers.append(convolve(num_channels, width, 3, size))
            num_channels = width
        size //= 2
    return layers, size


def count_conv6(cell: Cell) -> StepCost:
    layers, side = list_stages(cell, CONV6_STAGES)
    return count_classifier(cell, [*layers, connect(256 * side**2, 256), connect(256, 256)], 256)


def count_vgg16(cell: Cell) -> StepCost:
    layers, _ = list_stages(cell, VGG16_STAGES)
    return count_classifier(cell, [*layers, connect(512 * DENSE_SIDE**2, 4096), connect(4096, 4096)], 4096)


def count_resnet18(cell: Cell) -> StepCost:
    return count_residual(cell, *list_stem(cell), RESNET18_BLOCKS)


def count_resnet18_cifar(cell: Cell) -> StepCost:
    stem = convolve(3, 64, 3, cell.input_size, has_bias=False)
    return count_residual(cell, stem, cell.input_size, RESNET18_BLOCKS)


def count_resnet50(cell: Cell) -> StepCost:
    return count_residual(cell, *list_stem(cell), RESNET50_BLOCKS)


def list_stem(cell: Cell) -> tuple[Layer, int]:
    """Return the convolution for ImageNet's images, and the side of what the pooling behind it gives."""
    size = compute_output_size(cell.input_size, 7, stride=2, padding=3)
    return convolve(3, 64, 7, size, stride=2, has_bias=False), compute_output_size(size, 3, stride=2, padding=1)


def count_residual(cell: Cell, stem: Layer, size: int, blocks: Sequence[ResidualBlock]) -> StepCost:
    layers = [stem, normalize(64)]
    num_channels = 64
    for block in blocks:
        in_channels = num_channels
        for width, kernel_size, stride in block:
            size = compute_output_size(size, kernel_size, stride=stride, padding=kernel_size // 2)
            convolution = convolve(num_channels, width, kernel_size, size, stride=stride, has_bias=False)
            layers += [convolution, normalize(width)]
            num_channels = width
        stride = max(stride for _, _, stride in block)
        if stride != 1 or in_channels != num_channels:
            shortcut = convolve(in_channels, num_channels, 1, size, stride=stride, has_bias=False)
            layers += [shortcut, normalize(num_channels)]
    return count_classifier(cell, layers, num_channels)


def list_encoder(encoder: Encoder, length: int) -> list[Layer]:
    """Return the layers of a Transformer over `length` positions.

    A fused attention computes the products of queries and keys once more in the backward pass; they are not counted.
    """
    width = encoder.width
    layer = [
        normalize(width),
        connect(width, 3 * width, num_positions=length),
        Layer(macs=2 * length**2 * width, num_parameters=0),  # the attention itself
        connect(width, width, num_positions=length),
        normalize(width),
        connect(width, encoder.mlp_width, num_positions=length),
        connect(encoder.mlp_width, width, num_positions=length),
    ]
    return [*encoder.num_layers * layer, normalize(width)]


def count_vit_b_16(cell: Cell) -> StepCost:
    side, width = cell.input_size // PATCH_SIZE, VIT_ENCODER.width
    length = side**2 + 1
    patches = convolve(3, width, PATCH_SIZE, side, stride=PATCH_SIZE)
    embeddings = Layer(macs=0, num_parameters=(1 + length) * width)  # the class token and the positions
    return count_classifier(cell, [patches, embeddings, *list_encoder(VIT_ENCODER, length)], width)


def count_text_classifier(cell: Cell) -> StepCost:
    """Return the cost of one step: the embedding, which learns and multiplies nothing, the layers, one dense layer.

    Inference reads only the embeddings of the tokens that occur: the expected number of different ones in a batch of
    tokens drawn evenly, as synthetic ones are. Adam moves every embedding in every step, also those without gradient.
    """
    width = TEXT_ENCODER.width
    embedding = Layer(macs=0, num_parameters=(VOCABULARY_SIZE + cell.input_size) * width)
    cost = count_classifier(cell, [embedding, *list_encoder(TEXT_ENCODER, cell.input_size)], width)
    if cell.phase == "train":
        return cost
    unread = VOCABULARY_SIZE * (1 - 1 / VOCABULARY_SIZE) ** (cell.batch_size * cell.input_size)
    return replace(cost, min_bytes=cost.min_bytes - round(unread) * width * ELEMENT_BYTES[cell.precision])


# A training step of CycleGAN per pair of images, of a full pass's multiply-adds G (a generator) and D (a
# discriminator), with g and d those of their first layers:
# - generators: 6 forward passes (fakes, cycles, identities), 6 times the weights' gradients, 6 times the inputs',
#   without the first layer in those 4 whose input is data; a cycle's gradient flows on into the fake in front of it:
#   18 G - 4 g;
# - the discriminators that score the fakes of that part are frozen: 2 forward passes, 2 times the inputs' gradients all
#   the way to the fake, no weights': 4 D;
# - discriminators: 2 real and 2 fake images each trained on, detached: 4 times forward, weights' and inputs' gradients
#   without the first layer: 12 D - 4 d.
# 18 G + 16 D is the 1.885 TFLOP at 256 px that counting three times each forward pass gives; the first layers'
# gradients that nothing needs are 5.3 GFLOP of it.
def count_cyclegan(cell: Cell) -> StepCost:
    generator, discriminator = list_generator(cell.input_size), list_discriminator(cell.input_size)
    is_training = cell.phase == "train"

    def count(g: list[int], d: list[int]) -> int:
        return 18 * sum(g) + 16 * sum(d) - 4 * (g[0] + d[0]) if is_training else sum(g)

    num_parameters, num_judging = (sum(layer.num_parameters for layer in net) for net in (generator, discriminator))
    return make_cost(
        cell,
        macs=count(*([layer.macs for layer in net] for net in (generator, discriminator))),
        least_macs=count(*([layer.least_macs for layer in net] for net in (generator, discriminator))),
        num_parameters=2 * (num_parameters + num_judging) if is_training else num_parameters,
        input_bytes=(2 if is_training else 1) * count_image_bytes(cell),
        num_outputs=3 * cell.input_size**2,
    )


def list_generator(size: int) -> list[Layer]:
    half, quarter = size // 2, size // 4
    return [
        convolve(3, 64, 7, size),
        convolve(64, 128, 3, half, stride=2),
        convolve(128, 256, 3, quarter, stride=2),
        *[convolve(256, 256, 3, quarter)] * (2 * GENERATOR_BLOCKS),
        convolve_transposed(256, 128, 3, quarter),
        convolve_transposed(128, 64, 3, half),
        convolve(64, 3, 7, size),
    ]


def list_discriminator(size: int) -> list[Layer]:
    layers = []
    num_channels = 3
    for width, stride in ((64, 2), (128, 2), (256, 2), (512, 1), (1, 1)):
        size = compute_output_size(size, 4, stride=stride, padding=1)
        layers.append(convolve(num_channels, width, 4, size, stride=stride))
        num_channels = width
    return layers


def count_matmul(cell: Cell) -> StepCost:
    """Return the cost of one step: n^3 multiply-adds for each pair; two matrices are read, one is written."""
    macs, num_values = cell.input_size**3, cell.input_size**2
    input_bytes = 2 * num_values * ELEMENT_BYTES[cell.precision]
    # No library that the frameworks call has Strassen's algorithm: the least is what is counted.
    return make_cost(
        cell, macs=macs, least_macs=macs, num_parameters=0, input_bytes=input_bytes, num_outputs=num_values
    )


def count_llama(cell: Cell) -> StepCost:
    """Return the cost of one step of prefill or decoding; logits are of the last position alone.

    Prefill: each position attends to those before it and itself, and the cache is written. Decoding: one position
    attends to all, and the cache is read. Of the embedding only the rows of the tokens are read, unless it is the last
    layer too. Attention in its fused form multiplies no masked tile, so what the mask cuts off is not counted.
    """
    shape, context = DECODERS[cell.model], cell.input_size
    number = context if cell.phase == "prefill" else 1
    head = shape.vocabulary_size * shape.width
    num_pairs = context * (context + 1) // 2 if cell.phase == "prefill" else context
    macs = shape.num_layers * (number * shape.num_layer_weights + 2 * num_pairs * shape.width) + head
    norms = (2 * shape.num_layers + 1) * shape.width
    linear = shape.num_layers * shape.num_layer_weights + head
    cost = make_cost(
        cell,
        macs=macs,
        least_macs=macs,
        num_parameters=linear + norms,
        input_bytes=number * TOKEN_BYTES + shape.count_cached_values(context) * ELEMENT_BYTES[cell.precision],
        num_outputs=shape.vocabulary_size,
    )
    if cell.precision in EIGHT_BITS:
        cost = replace(cost, min_bytes=cost.min_bytes - linear)
    return cost if shape.is_tied else replace(cost, num_parameters=cost.num_parameters + head)


def count_step_cost(cell: Cell) -> StepCost:
    """Return the cost of one step on one GPU, or on the CPU: its share of the batch with a copy of all weights."""
    share = cell.model_copy(update={"batch_size": cell.batch_size // cell.num_gpus, "num_gpus": 1})
    cost: StepCost = find_definition(cell, "flops")(share)
    return cost

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

from bench.registry import name_definition
from bench.schema import Cell, Precision
from bench.tasks.inputs import VOCABULARY_SIZE

ELEMENT_BYTES: dict[Precision, int] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}
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


@dataclass(frozen=True, kw_only=True)
class Pass:
    """Multiply-adds per sample of one run through a network."""

    forward: int
    weight_gradients: int
    """As many as forward: each weight's gradient sums over the same products."""
    input_gradients: int
    """Those of every layer, the first included."""
    first_layer: int
    """The part of `input_gradients` that is only needed if something in front of the network learns."""


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


def attend(length: int, width: int) -> Layer:
    return Layer(macs=2 * length**2 * width, num_parameters=0)


def normalize(num_channels: int) -> Layer:
    return Layer(macs=0, num_parameters=2 * num_channels)


def list_encoder_layer(length: int, width: int, feed_forward_width: int) -> list[Layer]:
    """Return the layers of a transformer's encoder layer, the norms first: attention, then two dense layers."""
    return [
        normalize(width),
        connect(width, 3 * width, num_positions=length),
        attend(length, width),
        connect(width, width, num_positions=length),
        normalize(width),
        connect(width, feed_forward_width, num_positions=length),
        connect(feed_forward_width, width, num_positions=length),
    ]


def compute_output_size(size: int, kernel_size: int, *, stride: int, padding: int) -> int:
    return (size + 2 * padding - kernel_size) // stride + 1


def count_parameters(layers: Sequence[Layer]) -> int:
    return sum(layer.num_parameters for layer in layers)


def describe_pass(layers: Sequence[Layer]) -> Pass:
    macs = sum(layer.macs for layer in layers)
    return Pass(forward=macs, weight_gradients=macs, input_gradients=macs, first_layer=layers[0].macs)


def reduce_layers(layers: Sequence[Layer]) -> list[Layer]:
    """Return `layers` with the fewest multiply-adds that known algorithms need, rounded down."""
    return [replace(layer, macs=int(layer.macs / layer.saving), saving=1.0) for layer in layers]


def count_classifier(cell: Cell, layers: Sequence[Layer], *, input_bytes_per_sample: int) -> StepCost:
    """Return the cost of a step of a classifier. Its first layer's input is data, which needs no gradient."""
    assert cell.num_classes is not None
    num_parameters = count_parameters(layers)
    weight_bytes, output_bytes = count_traffic(cell, num_parameters, num_output_values=cell.num_classes)
    return StepCost(
        flops=2 * _count_classifier_macs(cell, layers) * cell.batch_size,
        least_flops=2 * _count_classifier_macs(cell, reduce_layers(layers)) * cell.batch_size,
        min_bytes=weight_bytes + cell.batch_size * (input_bytes_per_sample + output_bytes),
        num_parameters=num_parameters,
    )


def _count_classifier_macs(cell: Cell, layers: Sequence[Layer]) -> int:
    seen = describe_pass(layers)
    if cell.phase == "infer":
        return seen.forward
    return seen.forward + seen.weight_gradients + seen.input_gradients - seen.first_layer


def count_traffic(cell: Cell, num_parameters: int, *, num_output_values: int) -> tuple[int, int]:
    """Return the bytes of weights and optimiser state per step, and of the output per sample (training: 0)."""
    if cell.phase == "train":
        return num_parameters * TRAINING_BYTES_PER_PARAMETER, 0
    element_bytes = ELEMENT_BYTES[cell.precision]
    return num_parameters * element_bytes, num_output_values * element_bytes


def count_image_bytes(cell: Cell) -> int:
    return 3 * cell.input_size**2 * ELEMENT_BYTES[cell.precision]


def count_conv6(cell: Cell) -> StepCost:
    assert cell.num_classes is not None
    size, num_channels = cell.input_size, 3
    layers = []
    for width in (64, 128, 256):
        layers += [convolve(num_channels, width, 3, size), convolve(width, width, 3, size)]
        size, num_channels = size // 2, width
    layers += [connect(num_channels * size**2, 256), connect(256, 256), connect(256, cell.num_classes)]
    return count_classifier(cell, layers, input_bytes_per_sample=count_image_bytes(cell))


# Channels of the convolutions of each stage; a pooling by two follows each.
VGG_STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
POOLED_SIZE = 7  # whatever the input's size, the adaptive pooling hands 7 x 7 to the dense layers


def count_vgg16(cell: Cell) -> StepCost:
    assert cell.num_classes is not None
    size, num_channels = cell.input_size, 3
    layers = []
    for widths in VGG_STAGES:
        for width in widths:
            layers.append(convolve(num_channels, width, 3, size))
            num_channels = width
        size //= 2
    layers += [connect(num_channels * POOLED_SIZE**2, 4096), connect(4096, 4096), connect(4096, cell.num_classes)]
    return count_classifier(cell, layers, input_bytes_per_sample=count_image_bytes(cell))


# (channels, stride of the first block) of the four stages, two basic blocks each.
BASIC_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


def count_resnet18(cell: Cell) -> StepCost:
    stem, size = count_stem(cell)
    return count_with_stem(cell, stem, size)


def count_stem(cell: Cell) -> tuple[Layer, int]:
    size = compute_output_size(cell.input_size, 7, stride=2, padding=3)
    return convolve(3, 64, 7, size, stride=2, has_bias=False), compute_output_size(size, 3, stride=2, padding=1)


def count_with_stem(cell: Cell, stem: Layer, size: int) -> StepCost:
    assert cell.num_classes is not None
    layers = [stem, normalize(64)]
    num_channels = 64
    for width, stride in BASIC_STAGES:
        size = compute_output_size(size, 3, stride=stride, padding=1)
        layers += _list_basic_block(num_channels, width, size, stride=stride)
        layers += _list_basic_block(width, width, size, stride=1)
        num_channels = width
    layers.append(connect(num_channels, cell.num_classes))
    return count_classifier(cell, layers, input_bytes_per_sample=count_image_bytes(cell))


def _list_basic_block(in_channels: int, width: int, out_size: int, *, stride: int) -> list[Layer]:
    layers = [convolve(in_channels, width, 3, out_size, stride=stride, has_bias=False), normalize(width)]
    layers += [convolve(width, width, 3, out_size, has_bias=False), normalize(width)]
    if stride != 1:
        layers += [convolve(in_channels, width, 1, out_size, stride=stride, has_bias=False), normalize(width)]
    return layers


def count_resnet18_cifar(cell: Cell) -> StepCost:
    return count_with_stem(cell, convolve(3, 64, 3, cell.input_size, has_bias=False), cell.input_size)


# (channels of the 3x3 convolutions, blocks, stride of the first block) of the four stages.
BOTTLENECK_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
EXPANSION = 4


def count_resnet50(cell: Cell) -> StepCost:
    assert cell.num_classes is not None
    stem, size = count_stem(cell)
    layers = [stem, normalize(64)]
    num_channels = 64
    for width, num_blocks, stride in BOTTLENECK_STAGES:
        layers += _list_bottleneck(num_channels, width, size, stride=stride, has_shortcut=True)
        num_channels, size = EXPANSION * width, compute_output_size(size, 3, stride=stride, padding=1)
        for _ in range(num_blocks - 1):
            layers += _list_bottleneck(num_channels, width, size, stride=1, has_shortcut=False)
    layers.append(connect(num_channels, cell.num_classes))
    return count_classifier(cell, layers, input_bytes_per_sample=count_image_bytes(cell))


def _list_bottleneck(in_channels: int, width: int, in_size: int, *, stride: int, has_shortcut: bool) -> list[Layer]:
    out_channels, out_size = EXPANSION * width, compute_output_size(in_size, 3, stride=stride, padding=1)
    layers = [convolve(in_channels, width, 1, in_size, has_bias=False), normalize(width)]
    # v1.5: the stride is here
    layers += [convolve(width, width, 3, out_size, stride=stride, has_bias=False), normalize(width)]
    layers += [convolve(width, out_channels, 1, out_size, has_bias=False), normalize(out_channels)]
    if has_shortcut:
        shortcut = convolve(in_channels, out_channels, 1, out_size, stride=stride, has_bias=False)
        layers += [shortcut, normalize(out_channels)]
    return layers


PATCH_SIZE = 16
VIT_WIDTH = 768
VIT_LAYERS = 12
VIT_MLP_WIDTH = 3072


def count_vit_b_16(cell: Cell) -> StepCost:
    """Return the cost of one step: patches, twelve layers over them and the class token, a dense layer.

    A fused attention computes the products of queries and keys once more in the backward pass; they are not counted.
    """
    assert cell.num_classes is not None
    side = cell.input_size // PATCH_SIZE
    length = side**2 + 1
    embeddings = Layer(macs=0, num_parameters=(1 + length) * VIT_WIDTH)  # the class token and the positions
    encoder = VIT_LAYERS * list_encoder_layer(length, VIT_WIDTH, VIT_MLP_WIDTH)
    patches = convolve(3, VIT_WIDTH, PATCH_SIZE, side, stride=PATCH_SIZE)
    layers = [patches, embeddings, *encoder, normalize(VIT_WIDTH)]
    layers.append(connect(VIT_WIDTH, cell.num_classes))
    return count_classifier(cell, layers, input_bytes_per_sample=count_image_bytes(cell))


TEXT_WIDTH = 256
TEXT_MLP_WIDTH = 1024
TEXT_LAYERS = 4
TOKEN_BYTES = 4


def count_text_classifier(cell: Cell) -> StepCost:
    """Return the cost of one step: the embedding, which learns and multiplies nothing, four layers, one dense layer.

    A fused attention computes the products of queries and keys once more in the backward pass; they are not counted.
    Inference reads only the embeddings of the tokens that occur: the expected number of different ones in a batch of
    tokens drawn evenly, as synthetic ones are. Adam moves every embedding in every step, also those without gradient.
    """
    assert cell.num_classes is not None
    embedding = Layer(macs=0, num_parameters=(VOCABULARY_SIZE + cell.input_size) * TEXT_WIDTH)
    encoder = TEXT_LAYERS * list_encoder_layer(cell.input_size, TEXT_WIDTH, TEXT_MLP_WIDTH)
    layers = [embedding, *encoder, normalize(TEXT_WIDTH), connect(TEXT_WIDTH, cell.num_classes)]
    cost = count_classifier(cell, layers, input_bytes_per_sample=cell.input_size * TOKEN_BYTES)
    if cell.phase == "train":
        return cost
    unread = VOCABULARY_SIZE * (1 - 1 / VOCABULARY_SIZE) ** (cell.batch_size * cell.input_size)
    return replace(cost, min_bytes=cost.min_bytes - round(unread) * TEXT_WIDTH * ELEMENT_BYTES[cell.precision])


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
GENERATOR_BLOCKS = 9


def count_cyclegan(cell: Cell) -> StepCost:
    generator, discriminator = list_generator(cell.input_size), list_discriminator(cell.input_size)
    least_generator, least_discriminator = reduce_layers(generator), reduce_layers(discriminator)
    if cell.phase == "infer":
        macs, least_macs = describe_pass(generator).forward, describe_pass(least_generator).forward
        num_images, num_parameters = 1, count_parameters(generator)
    else:
        macs = count_training_macs(generator, discriminator)
        least_macs = count_training_macs(least_generator, least_discriminator)
        num_images, num_parameters = 2, 2 * (count_parameters(generator) + count_parameters(discriminator))
    weight_bytes, output_bytes = count_traffic(cell, num_parameters, num_output_values=3 * cell.input_size**2)
    return StepCost(
        flops=2 * macs * cell.batch_size,
        least_flops=2 * least_macs * cell.batch_size,
        min_bytes=weight_bytes + cell.batch_size * (num_images * count_image_bytes(cell) + output_bytes),
        num_parameters=num_parameters,
    )


def count_training_macs(generator: list[Layer], discriminator: list[Layer]) -> int:
    g, d = describe_pass(generator), describe_pass(discriminator)
    generators = 6 * (g.forward + g.weight_gradients + g.input_gradients) - 4 * g.first_layer
    frozen_discriminators = 2 * (d.forward + d.input_gradients)
    discriminators = 4 * (d.forward + d.weight_gradients + d.input_gradients - d.first_layer)
    return generators + frozen_discriminators + discriminators


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
    flops = 2 * cell.batch_size * cell.input_size**3
    return StepCost(
        flops=flops,
        least_flops=flops,  # no library that the frameworks call has Strassen's algorithm
        min_bytes=3 * cell.batch_size * cell.input_size**2 * ELEMENT_BYTES[cell.precision],
        num_parameters=0,
    )


def count_step_cost(cell: Cell) -> StepCost:
    """Return the cost of one step on one GPU, or on the CPU: its share of the batch with a copy of all weights."""
    share = cell.model_copy(update={"batch_size": cell.batch_size // cell.num_gpus, "num_gpus": 1})
    cost: StepCost = globals()[name_definition(cell.model, "flops")](share)
    return cost

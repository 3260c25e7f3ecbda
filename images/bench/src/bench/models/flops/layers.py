"""Counts the multiply-adds and parameters of single layers, and sums them up to the cost of a step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.schema import Cell, Precision

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
    """Return a square convolution: every output value sums kernel_size^2 x in_channels products."""
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
    """Return a dense layer with bias, applied at `num_positions` positions of each sample."""
    num_weights = in_features * out_features
    return Layer(macs=num_weights * num_positions, num_parameters=num_weights + out_features)


def attend(length: int, width: int) -> Layer:
    """Return self-attention without its dense layers: queries times keys and weights times values, over all heads."""
    return Layer(macs=2 * length**2 * width, num_parameters=0)


def normalize(num_channels: int) -> Layer:
    """Return a norm with scale and shift; its few operations are not counted."""
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
    """Return the height or width of a convolution's or pooling's output."""
    return (size + 2 * padding - kernel_size) // stride + 1


def count_parameters(layers: Sequence[Layer]) -> int:
    """Return the parameters of all layers."""
    return sum(layer.num_parameters for layer in layers)


def describe_pass(layers: Sequence[Layer]) -> Pass:
    """Return the multiply-adds of one run through `layers`."""
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
    """Return the multiply-adds of a step per sample."""
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
    """Return the bytes of one image of three channels."""
    return 3 * cell.input_size**2 * ELEMENT_BYTES[cell.precision]

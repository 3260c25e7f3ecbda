"""Counts the cost of a step of CycleGAN.

A training step per pair of images, of a full pass's multiply-adds G (a generator) and D (a discriminator), with g and d
those of their first layers:

- generators: 6 forward passes (fakes, cycles, identities), 6 times the weights' gradients, 6 times the inputs', without
  the first layer in those 4 whose input is data; a cycle's gradient flows on into the fake in front of it: 18 G - 4 g;
- the discriminators that score the fakes of that part are frozen: 2 forward passes, 2 times the inputs' gradients all
  the way to the fake, no weights': 4 D;
- discriminators: 2 real and 2 fake images each trained on, detached: 4 times forward, weights' and inputs' gradients
  without the first layer: 12 D - 4 d.

18 G + 16 D is the 1.885 TFLOP at 256 px that counting three times each forward pass gives; the first layers' gradients
that nothing needs are 5.3 GFLOP of it.
"""

from bench.models.flops.layers import (
    Layer,
    StepCost,
    compute_output_size,
    convolve,
    convolve_transposed,
    count_image_bytes,
    count_parameters,
    count_traffic,
    describe_pass,
    reduce_layers,
)
from bench.schema import Cell

NUM_BLOCKS = 9


def count(cell: Cell) -> StepCost:
    """Return the cost of one step: training of all four networks, or one generator's forward pass."""
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
    """Return the multiply-adds of a training step per pair of images (see the module's docstring)."""
    g, d = describe_pass(generator), describe_pass(discriminator)
    generators = 6 * (g.forward + g.weight_gradients + g.input_gradients) - 4 * g.first_layer
    frozen_discriminators = 2 * (d.forward + d.input_gradients)
    discriminators = 4 * (d.forward + d.weight_gradients + d.input_gradients - d.first_layer)
    return generators + frozen_discriminators + discriminators


def list_generator(size: int) -> list[Layer]:
    """Return the layers of a generator for images of `size` pixels: down by four, nine residual blocks, up by four."""
    half, quarter = size // 2, size // 4
    return [
        convolve(3, 64, 7, size),
        convolve(64, 128, 3, half, stride=2),
        convolve(128, 256, 3, quarter, stride=2),
        *[convolve(256, 256, 3, quarter)] * (2 * NUM_BLOCKS),
        convolve_transposed(256, 128, 3, quarter),
        convolve_transposed(128, 64, 3, half),
        convolve(64, 3, 7, size),
    ]


def list_discriminator(size: int) -> list[Layer]:
    """Return the layers of a PatchGAN of 70 px for images of `size` pixels."""
    layers = []
    num_channels = 3
    for width, stride in ((64, 2), (128, 2), (256, 2), (512, 1), (1, 1)):
        size = compute_output_size(size, 4, stride=stride, padding=1)
        layers.append(convolve(num_channels, width, 4, size, stride=stride))
        num_channels = width
    return layers

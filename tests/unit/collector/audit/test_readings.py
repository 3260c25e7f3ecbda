"""The FLOPs of the readings in study.yaml, summed from the layers."""

from collections.abc import Sequence

import pytest

from bench.models.flops import Layer, convolve, convolve_transposed, count_step_cost, list_discriminator, list_generator
from bench.registry import Phase
from bench.schema import Cell
from collector.audit.claims import load_study
from collector.audit.table import StatedReading
from factories import make_cell

PHASES: tuple[Phase, Phase] = ("infer", "train")


def find_reading(model: str, label: str, phase: Phase) -> StatedReading:
    rows = (row for row in load_study().rows if (row.model, row.phase) == (model, phase))
    return next(reading for row in rows for reading in row.list_readings() if reading.label == label)


def count_macs(layers: Sequence[Layer]) -> int:
    return sum(layer.macs for layer in layers)


def list_unet_generator() -> list[Layer]:
    """Return the layers of `unet_generator` of tensorflow_examples.models.pix2pix at 256 px, which its CycleGAN uses.

    Eight 4x4 convolutions of stride 2 down to one position, seven transposed ones up, each of which takes the output of
    the one before it and of the convolution of its size, and a last one to the image.
    """
    widths_down, widths_up = (64, 128, 256, 512, 512, 512, 512, 512), (512, 512, 512, 512, 256, 128, 64)
    layers, size, num_channels = [], 256, 3
    for width in widths_down:
        size //= 2
        layers.append(convolve(num_channels, width, 4, size))
        num_channels = width
    for width, skipped in zip(widths_up, reversed(widths_down[:-1]), strict=True):
        layers.append(convolve_transposed(num_channels, width, 4, size))
        size, num_channels = 2 * size, width + skipped
    return [*layers, convolve_transposed(num_channels, 3, 4, size)]


def test_the_unet_of_tensorflows_tutorial_computes_an_eighth_of_resnet_9() -> None:
    infer, train = (find_reading("cyclegan", "256 px with U-Net generators", phase) for phase in PHASES)
    unet, discriminator = count_macs(list_unet_generator()), count_macs(list_discriminator(256))
    assert unet / 1e9 == pytest.approx(6.048, abs=0.0005)
    assert infer.flops_per_sample == pytest.approx(2 * unet, rel=1e-4)
    # 6 generator passes, 2 frozen and 4 trained discriminator passes, each forward and two gradients or one.
    assert train.flops_per_sample == pytest.approx(2 * (18 * unet + 16 * discriminator), rel=1e-4)
    assert 2 * (18 * unet + 16 * discriminator) / 1e12 == pytest.approx(0.318, abs=0.0005)
    assert count_macs(list_generator(256)) / unet == pytest.approx(8.19, abs=0.005)


@pytest.mark.parametrize(
    ("model", "label", "input_size", "convolutions", "dense"),
    [
        ("conv6", "224 px", 224, 7_485_456_384, 51_448_320),
        ("conv6", "32 px", 32, 152_764_416, 1_116_672),
        ("vgg16", "224 px", 224, 15_346_630_656, 123_633_664),
    ],
)
def test_a_classifiers_3x3_convolutions_are_all_but_its_dense_layers(
    model: str, label: str, input_size: int, convolutions: int, dense: int
) -> None:
    macs = convolutions + dense
    for phase, times in zip(PHASES, (2, 6), strict=True):
        reading = find_reading(model, label, phase)
        assert reading.flops_per_sample == pytest.approx(times * macs, rel=1e-4)
        assert reading.winograd_share == pytest.approx(convolutions / macs, abs=5e-5)
    assert count_forward(make_work(model, input_size, 10 if model == "conv6" else 1000)) == 2 * macs


def test_397k_parameters_leave_a_range_of_operations() -> None:
    for phase, times in zip(PHASES, (1, 3), strict=True):
        reading = find_reading("conv6", "224 px with 397K parameters", phase)
        assert reading.flops_per_sample == times * 2 * 397_000
        assert reading.most_flops_per_sample == pytest.approx(times * 2 * 397_000 * 224**2, rel=1e-9)


def make_work(model: str, input_size: int, num_classes: int) -> Cell:
    return make_cell(model=model, input_size=input_size, num_classes=num_classes, batch_size=1, phase="infer")


def count_forward(cell: Cell) -> int:
    return count_step_cost(cell).flops

"""The analysis of a step's cost against published counts, counts by hand and PyTorch's own counter."""

from pathlib import Path
from typing import Any

import pytest

from bench.models.flops import convolve, count_step_cost
from bench.registry import DECODERS, MODELS, Framework, Reference
from bench.schema import Cell
from factories import make_cell
from framework_programs import ask
from mirror_cells import CASES


def make_sized_cell(model: str, input_size: int, num_classes: int | None, **fields: Any) -> Cell:
    return make_cell(**({"batch_size": 1} | fields), model=model, input_size=input_size, num_classes=num_classes)


# Published counts: multiply-adds of a forward pass per sample, and parameters


@pytest.mark.parametrize(
    ("model", "reference"),
    [
        pytest.param(name, reference, id=f"{name}-{reference.input_size}-{reference.num_classes}")
        for name, spec in MODELS.items()
        for reference in spec.references
    ],
)
def test_a_step_has_the_published_multiply_adds_and_parameters(model: str, reference: Reference) -> None:
    costs = {
        phase: count_step_cost(make_sized_cell(model, reference.input_size, reference.num_classes, phase=phase))
        for phase in MODELS[model].phases
    }
    forward = costs["infer" if "infer" in costs else "prefill"]
    assert forward.flops / 2e9 == pytest.approx(reference.giga_macs, rel=1e-3)
    assert forward.num_parameters == reference.num_parameters[0]
    if "train" in costs:
        assert costs["train"].num_parameters == sum(reference.num_parameters)


# By hand


@pytest.mark.parametrize(
    ("kernel_size", "stride", "saving"),
    [
        (3, 1, 4.0),  # F(4x4, 3x3): 36 products for 16 outputs of 9
        (3, 2, 1.0),
        (7, 1, 24.5),  # FFT
        (16, 16, 1.0),
    ],
)
def test_the_best_known_algorithm_saves_multiplications_for_kernels_of_stride_1(
    kernel_size: int, stride: int, saving: float
) -> None:
    layer = convolve(2, 4, kernel_size, 28, stride=stride)
    assert layer.macs / layer.least_macs == saving


@pytest.mark.parametrize(
    ("model", "phase", "layers_without_saving"),
    [
        # Per image at 224 px, in multiply-adds: the 7x7 stem of stride 2; two 3x3 convolutions and a shortcut of stride
        # 2 for each of three stages; the dense layer.
        (
            "resnet18",
            "infer",
            3 * 64 * 49 * 112**2
            + sum(9 * width // 2 * width * size**2 for width, size in ((128, 28), (256, 14), (512, 7)))
            + sum(width // 2 * width * size**2 for width, size in ((128, 28), (256, 14), (512, 7)))
            + 512 * 1000,
        ),
        ("vgg16", "infer", 25_088 * 4096 + 4096 * 4096 + 4096 * 1000),
        ("vit-b-16", "infer", None),
        ("vit-b-16", "train", None),
    ],
)
def test_the_least_operations_of_a_step_by_hand(model: str, phase: str, layers_without_saving: int | None) -> None:
    cost = count_step_cost(make_sized_cell(model, 224, 1000, phase=phase))
    macs = cost.flops // 2
    unsaved = macs if layers_without_saving is None else layers_without_saving
    assert cost.least_flops == 2 * (unsaved + (macs - unsaved) // 4)


def test_the_gradients_of_a_classifier_save_as_much_as_its_forward_pass() -> None:
    # All but the dense layers of Conv6 are 3x3 convolutions of stride 1, the first of which gives no gradient back.
    train, infer = (count_step_cost(make_sized_cell("conv6", 32, 10, phase=phase)) for phase in ("train", "infer"))
    dense = 4096 * 256 + 256 * 256 + 256 * 10
    first = 3 * 64 * 9 * 32**2
    assert infer.least_flops == 2 * (dense + (infer.flops // 2 - dense) // 4)
    assert train.least_flops == 3 * infer.least_flops - 2 * (first // 4)


def test_the_least_operations_of_cyclegan_are_those_of_its_passes() -> None:
    # Of a generator: 7x7 kernels at both ends, 18 of 3x3 at a quarter of the size; the rest has strides.
    size = 64
    ends, blocks = 2 * 3 * 64 * 49 * size**2, 18 * 256 * 256 * 9 * (size // 4) ** 2
    cost = count_step_cost(make_sized_cell("cyclegan", size, None, phase="infer"))
    rest = cost.flops // 2 - ends - blocks
    assert cost.least_flops == 2 * (rest + blocks // 4 + 2 * int(ends / 2 / 24.5))
    train = count_step_cost(make_sized_cell("cyclegan", size, None))
    assert train.flops / 24.5 < train.least_flops < train.flops / 2.5


def test_the_cost_of_a_matrix_product() -> None:
    cost = count_step_cost(make_sized_cell("matmul", 10_000, None, phase="infer", batch_size=2, precision="bf16"))
    assert (cost.flops, cost.least_flops, cost.min_bytes) == (2 * 2 * 10**12, 2 * 2 * 10**12, 2 * 3 * 10**8 * 2)


def test_a_text_reads_the_embeddings_that_occur() -> None:
    cost = count_step_cost(make_sized_cell("text-classifier", 128, 2, phase="infer", batch_size=1))
    # 128 draws of 20,000 are 127.6 different embeddings: 19,872 are not read. 512 bytes of tokens, 8 of logits.
    assert cost.min_bytes == (8_312_834 - 19_872 * 256) * 4 + 512 + 8


@pytest.mark.parametrize(("precision", "element_bytes"), [("fp32", 4), ("fp16", 2), ("bf16", 2)])
def test_inference_reads_weights_and_images_and_writes_logits(precision: str, element_bytes: int) -> None:
    cost = count_step_cost(make_sized_cell("conv6", 32, 10, phase="infer", batch_size=5, precision=precision))
    assert cost.min_bytes == element_bytes * (2_262_602 + 5 * (3 * 32 * 32 + 10))


@pytest.mark.parametrize(("precision", "element_bytes"), [("fp32", 4), ("bf16", 2)])
def test_training_moves_weights_and_moments_in_float32_both_ways(precision: str, element_bytes: int) -> None:
    cost = count_step_cost(make_sized_cell("conv6", 32, 10, batch_size=5, precision=precision))
    assert cost.min_bytes == 24 * 2_262_602 + element_bytes * 5 * 3 * 32 * 32


def test_each_of_several_gpus_has_its_share_of_the_batch_and_all_weights() -> None:
    shared = count_step_cost(make_sized_cell("vgg16", 224, 10, batch_size=8, device="gpu", num_gpus=4))
    assert count_step_cost(make_sized_cell("vgg16", 224, 10, batch_size=2, device="gpu")) == shared


# Against PyTorch's counter


# At the size of the mirrors, and at an odd one, where rounding of sizes shows.
CELLS = [
    make_sized_cell(model, input_size, num_classes, phase=phase, batch_size=2)
    for model, spec in MODELS.items()
    for input_size, num_classes in [
        (CASES[model].input_size, CASES[model].num_classes),
        (CASES[model].input_size + 3 * spec.input_size_multiple, spec.num_classes),
    ]
    for phase in spec.phases
]


@pytest.fixture(scope="module")
def pytorchs_counts(interpreters: dict[Framework, Path]) -> list[list[int]]:
    """Operations and parameters of each of CELLS, as PyTorch counts them."""
    cells = [cell.model_dump(mode="json") for cell in CELLS]
    counts: list[list[int]] = ask(interpreters["pytorch"], "check_flops.py", given=cells)
    return counts


@pytest.mark.parametrize("index", range(len(CELLS)), ids=[f"{cell.slug}-{cell.input_size}" for cell in CELLS])
def test_operations_and_parameters_are_exactly_those_that_pytorch_counts(
    pytorchs_counts: list[list[int]], index: int
) -> None:
    cell = CELLS[index]
    cost = count_step_cost(cell)
    num_masked = 0  # that counter counts the products which a causal mask cuts off
    if cell.phase == "prefill":
        shape = DECODERS[cell.model]
        num_masked = 2 * shape.num_layers * shape.width * cell.input_size * (cell.input_size - 1) * cell.batch_size
    assert [cost.flops + num_masked, cost.num_parameters] == pytorchs_counts[index]

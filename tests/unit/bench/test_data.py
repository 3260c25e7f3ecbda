"""Real data through each framework's own input pipeline: what the files hold arrives, prepared as docs/data.md says."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.registry import FRAMEWORKS
from bench.schema import Framework
from fake_interpreters import await_end
from framework_programs import Answers, ask
from tiny_data import (
    NUM_IMAGES_A,
    NUM_IMAGES_B,
    NUM_TEST_IMAGES,
    NUM_TRAINING_IMAGES,
    make_cifar10_image,
    write_cifar10,
    write_image_folders,
)

# As published: see bench.data.preprocessing.
MEAN = np.array([0.4914, 0.4822, 0.4465])
STD = np.array([0.2470, 0.2435, 0.2616])


def make_folder(folder: Path) -> Path:
    write_cifar10(folder / "cifar")
    write_image_folders(folder / "folders")
    return folder


@pytest.fixture(scope="module", params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Framework:
    name: Framework = request.param
    return name


@pytest.fixture(scope="module")
def answers(
    framework: Framework, interpreters: dict[Framework, Path], tmp_path_factory: pytest.TempPathFactory
) -> Answers:
    folder = make_folder(tmp_path_factory.mktemp("data"))
    found: Answers = ask(interpreters[framework], "check_data.py", framework, str(folder))
    return found


# CIFAR-10


def normalize(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    normalized: NDArray[np.float64] = (image / 255 - MEAN) / STD
    return normalized


def test_batches_have_the_frameworks_own_layout(framework: Framework, answers: Answers) -> None:
    shape = [10, 3, 32, 32] if framework == "pytorch" else [10, 32, 32, 3]
    labels = "int32" if framework == "jax" else "int64"
    (images_shape, images_type), (labels_shape, labels_type) = answers["cifar"]["kinds"]
    assert (images_shape, labels_shape) == (shape, [10])
    assert "float32" in images_type
    assert labels in labels_type


def test_an_image_arrives_normalised_and_otherwise_as_it_is_in_the_file(answers: Answers) -> None:
    assert np.allclose(normalize(make_cifar10_image(3)), answers["cifar"]["image"], atol=1e-5)


def test_inference_takes_the_images_in_their_order_and_begins_again_after_the_last(answers: Answers) -> None:
    labels = [number % 10 for number in range(NUM_TEST_IMAGES)]
    assert answers["cifar"]["labels"] == [*labels, *labels, *labels[:2]]


def test_a_larger_input_is_interpolated_bilinearly(answers: Answers) -> None:
    blue = np.array(answers["cifar"]["resized"])[:, 0, 2] * STD[2] + MEAN[2]
    # Blue is 8 x row. Pixel centres of 64 rows lie at (row + 1/2) / 2 - 1/2 of 32; beyond the outer ones nothing rises.
    expected = 8 * np.clip((np.arange(64) + 0.5) / 2 - 0.5, 0, 31) / 255
    # Two of the libraries round to 1/255.
    assert np.allclose(expected, blue, atol=0.51 / 255)


def test_a_smaller_input_is_smoothed_over_all_pixels(answers: Answers) -> None:
    red, green, blue = np.moveaxis(np.array(answers["cifar"]["shrunk"]) * STD + MEAN, -1, 0)
    assert np.allclose(3 / 255, red, atol=0.51 / 255)
    # Output pixel 11 of 24 is centred at 11.5 x 4/3 = 15.33 of 32, the halves meet at 16. A triangle of half-width 4/3
    # weighs the pixels centred at 14.5, 15.5 and 16.5 with 0.375, 0.875 and 0.125; only the last one is green.
    assert np.allclose(0.125 / 1.375, green[:, 11], atol=0.51 / 255)
    assert np.allclose(1 - 0.125 / 1.375, green[:, 12], atol=0.51 / 255)
    assert np.all(np.diff(blue[:, 0]) > 0)


def test_each_epoch_takes_every_image_once_in_an_order_of_its_own(answers: Answers) -> None:
    images = answers["cifar"]["training"]["images"]
    numbers = [number for number, *_ in images]
    assert [label for *_, label in images] == [number % 10 for number in numbers]
    epochs = [numbers[i : i + NUM_TRAINING_IMAGES] for i in range(0, len(numbers), NUM_TRAINING_IMAGES)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(NUM_TRAINING_IMAGES))] * 6
    orders = {tuple(epoch) for epoch in epochs} | {tuple(range(NUM_TRAINING_IMAGES))}
    assert len(orders) == 7


def test_training_images_are_moved_by_up_to_four_pixels_with_black_around_them(answers: Answers) -> None:
    images = answers["cifar"]["training"]["images"]
    rows = [row for _, row, *_ in images]
    assert set(rows) == set(range(-4, 5))
    # 600 images, 9 places: 67 each, standard deviation 7.7.
    assert all(30 < rows.count(row) < 105 for row in range(-4, 5))
    assert [row < 0 for number, row, *_ in images if number] == [black for number, _, _, black, _ in images if number]


def test_half_of_the_training_images_are_flipped(answers: Answers) -> None:
    flips = [is_flipped for _, _, is_flipped, *_ in answers["cifar"]["training"]["images"]]
    # 600 images: a standard deviation of 0.02.
    assert np.mean(flips) == pytest.approx(0.5, abs=0.08)
    # Each is prepared anew in each epoch.
    assert len({image[1:3] for image in map(tuple, answers["cifar"]["training"]["images"]) if image[0] == 50}) > 1


def test_equal_seeds_give_equal_batches_and_others_do_not(answers: Answers) -> None:
    assert answers["cifar"]["training"]["seeded_alike"] == [True, False]


# Image folders


def test_pairs_have_the_frameworks_own_layout_and_range(framework: Framework, answers: Answers) -> None:
    shape = [5, 3, 32, 32] if framework == "pytorch" else [5, 32, 32, 3]
    assert [found for found, _ in answers["folders"]["kinds"]] == [shape, shape]
    assert all("float32" in kind for _, kind in answers["folders"]["kinds"])
    # Black and white are in every image.
    assert answers["folders"]["extremes"] == pytest.approx([-1.0, 1.0], abs=1e-5)


def test_inference_takes_both_domains_in_the_order_of_names_whole_and_unflipped(answers: Answers) -> None:
    for domain, size in zip(answers["folders"]["inferred"], (NUM_IMAGES_A, NUM_IMAGES_B), strict=True):
        assert [(number, is_flipped) for number, is_flipped, _ in domain] == [(i % size, False) for i in range(15)]
        # Blue is row x 255/39; row 16 of 32 is centred at (16 + 1/2) x 40/32 - 1/2 = 20.125 of 40.
        assert [blue for *_, blue in domain] == pytest.approx([20.125 * 255 / 39] * 15, abs=1.0)


def test_training_shuffles_each_domain_by_itself(answers: Answers) -> None:
    numbers = [[number for number, *_ in domain] for domain in answers["folders"]["trained"]]
    for taken, size in zip(numbers, (NUM_IMAGES_A, NUM_IMAGES_B), strict=True):
        epochs = [tuple(taken[i : i + size]) for i in range(0, len(taken), size)]
        assert {tuple(sorted(epoch)) for epoch in epochs} == {tuple(range(size))}
        assert len(set(epochs)) > 5
    # 105 pairs out of 35: all but 1.7 of them are expected.
    assert len(set(zip(*numbers, strict=True))) > 25


def test_training_crops_from_286_256ths_of_the_size_and_flips_half(answers: Answers) -> None:
    described = [image for domain in answers["folders"]["trained"] for image in domain]
    # Loaded at 36 pixels (32 x 286/256), cropped at 0 to 4: blue of the middle row shows where.
    blues = [((16 + offset + 0.5) * 40 / 36 - 0.5) * 255 / 39 for offset in range(5)]
    nearest = [int(np.argmin(np.abs(np.array(blues) - blue))) for *_, blue in described]
    assert [blue for *_, blue in described] == pytest.approx([blues[offset] for offset in nearest], abs=1.0)
    assert set(nearest) == {0, 1, 2, 3, 4}
    # 210 images: a standard deviation of 0.035.
    assert np.mean([is_flipped for _, is_flipped, _ in described]) == pytest.approx(0.5, abs=0.14)
    flips = ([is_flipped for _, is_flipped, _ in domain] for domain in answers["folders"]["trained"])
    assert len(set(zip(*flips, strict=True))) == 4  # each domain by itself


def test_jpegs_are_decoded(answers: Answers) -> None:
    for colour in answers["jpegs"]["colours"]:
        assert colour == pytest.approx([200, 100, 50], abs=2.5)  # what JPEG's own rounding loses


def test_damage_met_in_mid_run_is_one_message_that_names_the_file(answers: Answers) -> None:
    before, path, after = answers["jpegs"]["damage"].partition("trainB/broken.jpg")
    assert (before.startswith("data_dir: "), path) == (True, "trainB/broken.jpg")
    assert after == " cannot be decoded as a JPEG or PNG image; fix or remove it"


@pytest.mark.parametrize("name", ["pytorch", "jax"])
def test_worker_processes_end_with_the_measuring_process(
    name: Framework, interpreters: dict[Framework, Path], tmp_path: Path
) -> None:
    pids = ask(interpreters[name], "check_data.py", name, str(make_folder(tmp_path)), "leave")
    assert len(pids) == 2
    # PyTorch has a watchdog of its own, Grain has none: its workers would stay.
    for pid in pids:
        await_end(pid)


# tf.data reads the files itself: a Python class cannot slow it down.
@pytest.mark.parametrize("name", ["pytorch", "jax"])
def test_a_pipeline_says_how_many_batches_it_holds_ready(
    name: Framework, interpreters: dict[Framework, Path], tmp_path: Path
) -> None:
    folder = write_cifar10(tmp_path / "cifar")
    answer = ask(interpreters[name], "check_slow_loader.py", name, str(folder))
    assert answer["num_queued"] == answer["max_queued_batches"]

"""PyTorch carries out a cell as it records it, in each mode and precision: asked once by one program."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from bench.schema import Framework
from bench.tasks.inputs import make_inputs
from factories import make_cell
from framework_programs import Answers, ask

POOL_SIZE = 50


@pytest.fixture(scope="module")
def answers(interpreters: dict[Framework, Path]) -> Answers:
    if not shutil.which("g++"):
        pytest.skip("torch.compile needs a C++ compiler on a CPU")
    return ask(interpreters["pytorch"], "check_pytorch.py")


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("bf16", 1e-2)])
def test_compiled_steps_learn_what_eager_steps_learn(answers: Answers, precision: str, tolerance: float) -> None:
    eager, compiled = (answers["training"][f"{mode} {precision}"]["losses"] for mode in ("eager", "compiled"))
    assert np.ravel(compiled) == pytest.approx(np.ravel(eager), rel=tolerance)


def test_half_precision_is_used_and_is_near_to_full_precision(answers: Answers) -> None:
    full, half = (np.ravel(answers["training"][f"eager {precision}"]["losses"]) for precision in ("fp32", "bf16"))
    assert not np.array_equal(full, half)
    assert half == pytest.approx(full, rel=2e-2)
    assert np.ravel(answers["scaled"]["losses"]) == pytest.approx(full, rel=2e-2)  # fp16 with its loss scaled


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 1e-3)])
def test_compiled_inference_gives_what_eager_inference_gives(
    answers: Answers, precision: str, tolerance: float
) -> None:
    eager, compiled = (answers["inference"][f"{mode} {precision}"] for mode in ("eager", "compiled"))
    assert compiled == pytest.approx(eager, abs=tolerance)


def test_inference_in_bf16_has_weights_of_eight_bits_of_mantissa(answers: Answers) -> None:
    """A bfloat16 is a float32 whose lower 16 bits are zero."""
    for mode, is_half in (("eager bf16", True), ("compiled bf16", True), ("eager fp32", False)):
        bits = np.array(answers["inference"][mode], dtype=np.float32).view(np.uint32)
        assert bool((bits & 0xFFFF == 0).all()) == is_half


def test_the_record_says_what_was_decided_for_the_mode(answers: Answers) -> None:
    eager, compiled = (answers["training"][f"{mode} fp32"]["settings"] for mode in ("eager", "compiled"))
    assert tuple(eager[name] for name in ("memory_format", "torch_compile", "optimizer")) == (
        "contiguous (NCHW)",
        False,
        "default Adam",
    )
    assert tuple(compiled[name] for name in ("memory_format", "torch_compile", "optimizer")) == (
        "channels last (NHWC)",
        True,
        "fused Adam",
    )
    assert (eager["cuda_graph"], compiled["cuda_graph"]) == (False, False)  # there is no CUDA here
    assert {answer["device_kind"] for answer in answers["training"].values()} == {"cpu"}


def test_only_inference_on_a_gpu_has_options_and_every_kernel_is_tried_where_that_is_quick(answers: Answers) -> None:
    expected = {"gpu conv6 infer": {"max_autotune": True}, "gpu resnet18 infer": {"coordinate_descent_tuning": True}}
    assert {cell: options for cell, options in answers["inductor"].items() if options} == expected
    assert answers["training"]["compiled fp32"]["settings"]["inductor_options"] == "none"


def test_every_network_is_trained(answers: Answers) -> None:
    assert len(answers["training"]["cyclegan"]["moved"]) == 4
    for answer in answers["training"].values():
        assert all(answer["moved"].values())
        assert np.isfinite(answer["losses"]).all()


def test_a_classifier_without_knowledge_has_the_loss_of_a_guess(answers: Answers) -> None:
    for name, num_classes, tolerance in (("eager fp32", 10, 0.1), ("text-classifier", 2, 0.5)):
        assert answers["training"][name]["losses"][0][0] == pytest.approx(np.log(num_classes), abs=tolerance)


def test_cyclegans_generators_run_six_times_and_leave_the_discriminators_alone(answers: Answers) -> None:
    """Two fakes, two cycles, two identities (Zhu et al., arXiv 1703.10593); discriminators are trained in part two."""
    parts = answers["parts"]
    assert (parts["num_calls_first_part"], parts["num_calls_step"]) == (6, 6)
    assert parts["num_gradients_first_part"] == 0
    assert (parts["num_parameters"], parts["num_gradients_step"]) == (20, 20)  # five convolutions with bias, twice


def test_the_pool_is_filled_first_and_then_swaps_half_of_the_time(answers: Answers) -> None:
    shown, came = np.array(answers["pool"]["shown"]), np.array(answers["pool"]["came"])
    np.testing.assert_array_equal(shown[:POOL_SIZE], came[:POOL_SIZE])
    is_swapped = (shown != came)[POOL_SIZE:]
    # 950 fair coins: mean 475, standard deviation 15.4; five of them either way.
    assert is_swapped.sum() == pytest.approx(475, abs=5 * 15.4)
    assert (came[POOL_SIZE:][is_swapped] < shown[POOL_SIZE:][is_swapped]).all()  # a swap gives an earlier image


def test_the_pool_keeps_fifty_images_and_each_comes_out_at_most_once_after_it_went_in(answers: Answers) -> None:
    """A newcomer is passed through, or stored while an older one leaves: nothing is lost, nothing comes twice."""
    came, kept = answers["pool"]["came"], answers["pool"]["kept"]
    assert len(set(kept)) == POOL_SIZE
    later = came[POOL_SIZE:]
    assert len(set(later)) == len(later)
    assert set(answers["pool"]["shown"]) == set(later) | set(kept)
    assert set(later) & set(kept) == set()


def test_two_processes_with_half_the_batch_train_as_one_with_the_whole(answers: Answers) -> None:
    """Adam divides a gradient by its size, so rounding shows where it is next to zero.

    To 0.1 % of the way gone with AVX-512, to 2 % on a CPU without it, whose convolutions of 4 and of 8 samples add up
    in another order. Processes that did not exchange their gradients would be where half the batch alone leads.
    """
    assert answers["replicas"]["shares"] == [8, 4]
    assert answers["replicas"]["difference"] < min(0.05, answers["replicas"]["difference_of_half"] / 5)


def test_pytorch_switches_tf32_off_and_its_record_says_what_is(answers: Answers) -> None:
    expected = {
        "matmul_tf32": False,
        "cudnn_tf32": False,
        "cudnn_benchmark": True,
        "num_threads": 1,
        "num_interop_threads": 1,
    }
    assert answers["switches"] == expected
    assert {name: answers["settings"][name] for name in expected} == expected


def test_inference_in_pytorch_changes_nothing_and_builds_no_gradient(answers: Answers) -> None:
    inference = answers["unchanged"]
    assert (inference["num_changed"], inference["num_gradients"], inference["is_training"]) == (0, 0, False)
    shape, requires_grad, is_inference_mode = [2, 10], False, True
    assert inference["seen"] == [[shape, requires_grad, is_inference_mode]] * 3


def test_pytorch_knows_its_ways_of_running_out_of_memory(answers: Answers) -> None:
    expected = {"cuda allocator", "cuda context", "cublas", "c++", "cpu"}
    assert {name for name, is_out_of_memory in answers["out_of_memory"].items() if is_out_of_memory} == expected


def test_equal_seeds_make_equal_weights_and_others_do_not(answers: Answers) -> None:
    assert answers["seeded_alike"] == [True, False]


def test_a_batch_has_the_cells_shape_standard_normal_values_and_labels_of_every_class() -> None:
    images, labels = make_inputs(make_cell(batch_size=500, input_size=16, num_classes=5))
    assert (images.shape, images.dtype, labels.shape) == ((500, 3, 16, 16), np.dtype(np.float32), (500,))
    # 384,000 values: the mean's standard error is 0.0016.
    assert float(images.mean()) == pytest.approx(0.0, abs=0.01)
    assert float(images.std()) == pytest.approx(1.0, abs=0.01)
    assert set(labels.tolist()) == {0, 1, 2, 3, 4}


def test_another_seed_makes_other_data() -> None:
    batches = [make_inputs(make_cell(batch_size=2, seed=seed)) for seed in (1, 2)]
    assert not np.array_equal(batches[0][0], batches[1][0])

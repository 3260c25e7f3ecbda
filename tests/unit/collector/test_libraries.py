"""In which libraries and settings the sides of a comparison differ, besides what is compared."""

from typing import Any

import pytest

from bench.schema import Environment
from collector.analysis import analyze_run
from collector.comparisons import PRECISIONS
from collector.results.hosts import shorten_cudnn
from collector.tables.comparisons import make_comparison_table
from collector.tables.environments import describe_libraries
from factories import make_cell, make_environment, make_gpu
from measured_runs import Collect, make_spread


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [("91900", "9.19.0"), ("9.19.0.56", "9.19.0"), ("8902", "8.9.2"), ("9", "9"), ("90100", "9.1.0")],
)
def test_versions_of_cudnn_have_one_form(recorded: str, shown: str) -> None:
    assert shorten_cudnn(recorded) == shown


def make_gpu_environment(package: str, cuda: str, cudnn: str, **settings: str | bool) -> Environment:
    """Return an environment of a framework on a card, with these libraries."""
    gpu = make_gpu(cuda_version=cuda, cudnn_version=cudnn)
    return make_environment(gpus=(gpu,), versions={package: "2.0"}, settings=settings)


def describe(
    collect: Collect, pytorch: Environment, own: Environment, modes: tuple[str, ...] = ("graph",), **fields: Any
) -> str:
    """Return what is said of PyTorch beside TensorFlow in these modes, with these fields of the cells."""
    cells = [make_cell(framework="tensorflow", mode=mode, **fields) for mode in modes]
    others = [result for cell in cells for result in make_spread(cell, 0.2, own)]
    analysis = analyze_run(collect(*make_spread(make_cell(**fields), 0.1, pytorch), *others))
    return describe_libraries(analysis.comparisons["frameworks"], analysis.collection)


@pytest.mark.parametrize(
    ("model", "own", "text"),
    [
        (
            "conv6",
            make_gpu_environment("tensorflow", "12.5.1", "9", memory_format="NHWC"),
            "The frameworks differ, or may, in: CUDA 13.0 (PyTorch), 12.5.1 (TensorFlow, of its build); cuDNN 9.19.0 "
            "(PyTorch), 9 (TensorFlow, of its build); layout of images NCHW (PyTorch), NHWC (TensorFlow); cuDNN tries "
            "its algorithms first (cudnn_benchmark): yes (PyTorch), not recorded (TensorFlow).",
        ),
        (
            "resnet18",
            make_gpu_environment("tensorflow", "13.0", "9.19.0.1", memory_format="NCHW", cudnn_benchmark=True),
            "Keras (TensorFlow) computes the batch norms of resnet18 from several operations, PyTorch in one.",
        ),
        ("conv6", make_gpu_environment("tensorflow", "13.0", "91900", memory_format="NCHW", cudnn_benchmark=True), ""),
    ],
    ids=("other libraries", "batch norms", "the same"),
)
def test_libraries_of_compared_frameworks_are_named_where_they_differ(
    collect: Collect, model: str, own: Environment, text: str
) -> None:
    pytorch = make_gpu_environment("torch", "13.0", "91900", memory_format="NCHW", cudnn_benchmark=True)
    assert describe(collect, pytorch, own, model=model, device="gpu", input_size=32) == text


@pytest.mark.parametrize("modes", [("graph", "fused-norm"), ("graph",)])
def test_fused_norms_are_named_only_where_they_were_measured(collect: Collect, modes: tuple[str, ...]) -> None:
    pytorch, own = (make_gpu_environment(name, "13.0", "91900") for name in ("torch", "tensorflow"))
    text = describe(collect, pytorch, own, modes=modes, model="resnet18", device="gpu", input_size=32)
    assert ("fused-norm" in text) == ("fused-norm" in modes)


def test_what_a_cpu_does_not_use_is_not_named_of_cells_on_it(collect: Collect) -> None:
    pytorch = make_environment(versions={"torch": "2.0"}, settings={"memory_format": "NCHW", "cudnn_benchmark": True})
    own = make_environment(versions={"tensorflow": "2.0"}, settings={"memory_format": "NHWC"})
    text = describe(collect, pytorch, own)
    assert "layout of images NCHW (PyTorch), NHWC (TensorFlow)" in text
    assert "cuDNN" not in text


@pytest.mark.parametrize(
    ("phase", "recorded", "named"),
    [
        ("train", {"optimizer": "Keras Adam"}, "default Adam (PyTorch), Keras Adam (TensorFlow)"),
        ("train", {}, "default Adam (PyTorch), not recorded (TensorFlow)"),
        ("infer", {"optimizer": "none"}, ""),
        ("infer", {}, ""),
    ],
    ids=("another", "not recorded", "none", "neither used nor recorded"),
)
def test_the_optimizers_of_training_are_held_against_each_other(
    collect: Collect, phase: str, recorded: dict[str, str], named: str
) -> None:
    used = "default Adam" if phase == "train" else "none"
    pytorch = make_environment(versions={"torch": "2.0"}, settings={"optimizer": used})
    own = make_environment(versions={"tensorflow": "2.0"}, settings=recorded)
    text = f"The frameworks differ, or may, in: optimizer {named}." if named else ""
    assert describe(collect, pytorch, own, phase=phase) == text


NCHW: dict[str, Any] = {"memory_format": "NCHW", "optimizer": "Adam", "cudnn_benchmark": True, "cuda_graph": False}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            NCHW | {"memory_format": "NHWC", "cudnn_benchmark": False, "cuda_graph": True},
            " The sides differ in settings, too: layout of images NHWC / NCHW; use of CUDA graphs yes / no. How much "
            "of a ratio that explains is not known.",
        ),
        (NCHW, ""),
        ({}, ""),
    ],
    ids=["others", "same", "not recorded"],
)
def test_a_setting_that_comes_with_a_precision_is_said_beside_its_ratio(
    collect: Collect, settings: dict[str, Any], words: str
) -> None:
    sides = (("fp32", 3.0, NCHW), ("bf16", 1.0, settings))
    results = [
        result
        for precision, seconds, own in sides
        for environment in [make_gpu_environment("torch", "13.0", "91900", **own)]
        for result in make_spread(make_cell(device="gpu", precision=precision), seconds, environment)
    ]
    remark = make_comparison_table(PRECISIONS, analyze_run(collect(*results))).remark
    assert remark.partition(" The sides")[1] + remark.partition(" The sides")[2] == words

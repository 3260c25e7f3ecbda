"""In which libraries two frameworks differ that are compared."""

import pytest

from bench.schema import Environment
from collector.analysis import analyze_run
from collector.results.hosts import shorten_cudnn
from collector.tables.environments import describe_libraries
from factories import make_cell, make_environment, make_gpu
from measured_runs import Collect
from spread_runs import make_spread


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
    cell = make_cell(model=model, device="gpu", input_size=32)
    graph = make_cell(model=model, device="gpu", input_size=32, framework="tensorflow", mode="graph")
    analysis = analyze_run(collect(*make_spread(cell, 0.1, pytorch), *make_spread(graph, 0.2, own)))
    assert describe_libraries(analysis.comparisons["frameworks"], analysis.collection) == text


@pytest.mark.parametrize(
    ("phase", "recorded", "text"),
    [
        (
            "train",
            {"optimizer": "Keras Adam"},
            "The frameworks differ, or may, in: optimizer default Adam (PyTorch), Keras Adam (TensorFlow).",
        ),
        (
            "train",
            {},
            "The frameworks differ, or may, in: optimizer default Adam (PyTorch), not recorded (TensorFlow).",
        ),
        ("infer", {"optimizer": "none"}, ""),
        ("infer", {}, ""),
    ],
    ids=("another", "not recorded", "none", "neither used nor recorded"),
)
def test_the_optimizers_of_training_are_held_against_each_other(
    collect: Collect, phase: str, recorded: dict[str, str], text: str
) -> None:
    used = "default Adam" if phase == "train" else "none"
    pytorch = make_environment(versions={"torch": "2.0"}, settings={"optimizer": used})
    own = make_environment(versions={"tensorflow": "2.0"}, settings=recorded)
    sides = (make_cell(phase=phase), pytorch), (make_cell(phase=phase, framework="tensorflow", mode="graph"), own)
    results = [result for cell, environment in sides for result in make_spread(cell, 0.1, environment)]
    analysis = analyze_run(collect(*results))
    assert describe_libraries(analysis.comparisons["frameworks"], analysis.collection) == text

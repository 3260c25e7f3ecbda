"""The definitions of the models: sizes and dropouts. test_step_cost.py has their parameters."""

import sysconfig
from pathlib import Path
from typing import Any

import pytest

from bench.registry import DECODERS, MODELS, Framework
from framework_programs import ask

Facts = dict[str, Any]


@pytest.fixture(scope="module")
def facts(interpreters: dict[Framework, Path]) -> dict[str, Facts]:
    """What the definitions of either dialect say of themselves."""
    pythons = {"torch": interpreters["pytorch"], "keras": interpreters["tensorflow"]}
    return {dialect: ask(python, "model_facts.py", dialect) for dialect, python in pythons.items()}


@pytest.mark.parametrize("model", ["llama-tiny", *(name for name, spec in MODELS.items() if not spec.definition)])
def test_the_smallest_sizes_build_and_run_in_both_dialects(facts: dict[str, Facts], model: str) -> None:
    spec = MODELS[model]
    expected = facts["torch"]["shapes"][model]
    for size, shapes in zip(
        (spec.min_input_size, spec.min_input_size + spec.input_size_multiple), expected, strict=True
    ):
        match spec.task:
            case "image-translation":
                assert 2 * [[2, 3, size, size]] == shapes[:2]
            case "matrix-product":
                assert [[2, size, size]] == shapes
            case "text-generation":
                assert [[2, DECODERS[model].vocabulary_size]] == shapes
            case _:
                assert [[2, spec.num_classes]] == shapes
    assert expected == facts["keras"]["shapes"][model]


@pytest.mark.parametrize("dialect", ["torch", "keras"])
def test_vgg16_has_two_dropouts_of_a_half(facts: dict[str, Facts], dialect: str) -> None:
    assert [0.5, 0.5] == facts[dialect]["dropouts"]


def test_a_language_model_computes_the_same_with_its_cache_in_both_frameworks_and_in_transformers(
    interpreters: dict[Framework, Path], tmp_path: Path
) -> None:
    """Behind a prompt and 16 greedy steps, in float64."""
    file, packages = str(tmp_path / "llama.npz"), sysconfig.get_path("purelib")
    assert max(ask(interpreters["pytorch"], "mirror_llama.py", "torch", file)) < 1e-13
    assert max(ask(interpreters["jax"], "mirror_llama.py", "jax", file)) < 1e-13
    assert max(ask(interpreters["pytorch"], "mirror_llama.py", "transformers", file, packages)) < 1e-8


def test_the_error_of_a_precision_is_that_of_its_digits(interpreters: dict[Framework, Path]) -> None:
    """Significant bits of a value: 24, 8, about 7 of int8 in a row of normal values, 4."""
    errors = ask(interpreters["pytorch"], "precision_errors.py", "pytorch")
    assert errors["step"] == pytest.approx(1, abs=0.05)
    assert errors["fp32"] < 1e-5 < 1e-3 < errors["bf16"] < errors["int8-weights"] < errors["fp8"] < 0.2
    jax = ask(interpreters["jax"], "precision_errors.py", "jax")
    assert {name: pytest.approx(errors[name], rel=0.2) for name in jax} == jax

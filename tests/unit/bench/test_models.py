"""The definitions of the models: sizes and dropouts. test_step_cost.py has their parameters."""

from pathlib import Path
from typing import Any

import pytest

from bench.registry import MODELS, Framework
from framework_programs import ask

Facts = dict[str, Any]


@pytest.fixture(scope="module")
def facts(interpreters: dict[Framework, Path]) -> dict[str, Facts]:
    """What the definitions of either dialect say of themselves."""
    pythons = {"torch": interpreters["pytorch"], "keras": interpreters["tensorflow"]}
    return {dialect: ask(python, "model_facts.py", dialect) for dialect, python in pythons.items()}


@pytest.mark.parametrize("model", MODELS)
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
            case _:
                assert [[2, spec.num_classes]] == shapes
    assert expected == facts["keras"]["shapes"][model]


@pytest.mark.parametrize("dialect", ["torch", "keras"])
def test_vgg16_has_two_dropouts_of_a_half(facts: dict[str, Facts], dialect: str) -> None:
    assert [0.5, 0.5] == facts[dialect]["dropouts"]

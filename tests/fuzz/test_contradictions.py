"""What is drawn as a contradiction is one: a valid document, and refused for what it says."""

import json

import pytest

from bench.contradictions import find_contradiction
from bench.schema import read_result
from fuzz.contradictions import CHANGES, contradict
from fuzz.stored import CPU_RESULT, GPU_RESULT


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("result", [CPU_RESULT, GPU_RESULT], ids=["cpu", "gpu"])
def test_every_change_makes_a_contradiction(name: str, result: object) -> None:
    tree = json.loads(result.to_json())  # type: ignore[attr-defined]
    assert find_contradiction(read_result(json.dumps(tree).encode())) is None
    assert find_contradiction(read_result(json.dumps(contradict(tree, name)).encode())) is not None

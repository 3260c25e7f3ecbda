"""Recorded answers of an API server, changed at any depth: each reader takes them, or names the object."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from answer_readers import READERS, refuse
from cluster_objects import list_objects
from fuzz.mutations import draw_changed
from fuzz.server_inputs import CLUSTER

NUM_EXAMPLES = 100
"""Of each kind: a second at the most. `make fuzz` feeds whole clusters to the commands."""


def list_recorded(kind: str) -> list[Any]:
    own = [found for name, found in list_objects().items() if f"{name.partition('-')[0]}s" == kind]
    said = CLUSTER[kind]
    return own or said.get("items", [said])


@pytest.mark.parametrize("kind", sorted(READERS))
def test_a_recorded_object_with_any_changes_is_read_or_named(kind: str) -> None:
    @settings(derandomize=True, max_examples=NUM_EXAMPLES, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(draw_changed(list_recorded(kind)))
    def look(item: Any) -> None:
        error = refuse(json.dumps(item), kind)
        assert error is None or error.message.startswith("the API server's answer is none of Kubernetes: ")
        # Another cause would be a value that a reader reads and its shape does not name.
        assert error is None or isinstance(error.__cause__, ValueError | None)

    look()

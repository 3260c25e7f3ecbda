"""Whatever stands at any place of a recorded object: readers take it, or the object and the place are named."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from answer_readers import READERS, refuse
from cluster_objects import list_objects, load_object
from fuzz.mutations import Path, list_paths
from fuzz.server_inputs import CLUSTER
from runner.kubernetes.answers import AnswerError, ApiObject, decode_answer, decode_object, read_item
from runner.kubernetes.kueue import choose_api_version
from runner.kubernetes.object_shapes import FINDERS
from runner.kubernetes.object_status import read_remaining_job

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    7.5,
    2**63,
    10**400,
    "",
    "x",
    "9" * 300,
    "\ud800",
    [],
    [None],
    [[]],
    {},
    {"": None},
    {"x": {}},
)


def list_recorded() -> Iterator[Any]:
    for name, found in list_objects().items():
        if name.partition("-")[0] not in ("job", "pod"):
            continue
        yield pytest.param(f"{name.partition('-')[0]}s", found, id=name)
    for kind in sorted(READERS.keys() - {"jobs", "pods"}):
        said = CLUSTER[kind]
        yield pytest.param(kind, said["items"][0] if "items" in said else said, id=kind)


def put(tree: Any, path: Path, value: Any) -> str:
    """Return the JSON text of a tree with another value at a place."""
    changed = copy.deepcopy(tree)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(changed)


def list_answers(tree: Any) -> Iterator[str]:
    for path in list_paths(tree):
        yield from (put(tree, path, value) for value in ODD)


@pytest.mark.parametrize(("kind", "recorded"), [*list_recorded()])
def test_an_object_with_any_odd_value_is_read_or_named(kind: str, recorded: Any) -> None:
    refused = [error for text in list_answers(recorded) if (error := refuse(text, kind)) is not None]
    assert refused
    for error in refused:
        assert error.message.startswith(f"the API server's answer is none of Kubernetes: one of the {kind}")
        assert len(error.message) < 900
        assert isinstance(error.__cause__, ValueError | None), "a reader reads what the shape does not name"


@pytest.mark.parametrize("kind", sorted(FINDERS.keys() & CLUSTER.keys()))
def test_a_recorded_answer_is_of_its_shape(kind: str) -> None:
    said = CLUSTER[kind]
    for item in said.get("items", [said]):
        assert FINDERS[kind](item) is None


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("spec", "resourceGroups"), {}, "spec.resourceGroups: expected a list, found an object"),
        (("spec", "resourceGroups", 0, "flavors"), [], "spec.resourceGroups[0].flavors is empty"),
        (("spec", "resourceGroups", 0, "flavors", 0, "name"), None, "spec.resourceGroups[0].flavors[0].name is"),
        (("status", "conditions", 0, "status"), True, "status.conditions[0].status: expected a text, found true"),
    ],
)  # fmt: skip
def test_the_place_deep_inside_an_answer_is_named(path: Path, value: Any, words: str) -> None:
    body = put(CLUSTER["clusterqueues"], path, value).encode()
    with pytest.raises(AnswerError) as caught:
        decode_object(body, "clusterqueues", "its answer to /apis/x")
    assert f"its answer to /apis/x: {words}" in caught.value.message


@pytest.mark.parametrize("amount", ["1e999999", "NaN", "4Zi", "", True, [], 10**30, "-1e300", "1e-30"])
def test_what_is_no_quantity_is_named(amount: object) -> None:
    node = load_node_with_memory(amount)
    with pytest.raises(
        AnswerError, match=r"status.allocatable.memory: expected a quantity such as 500m or 4Gi, found "
    ):
        read_item(node, READERS["nodes"], "nodes")
    for good in ("500m", "16Gi", 7, 0.5, "1e3", "9223372036854775807"):
        read_item(load_node_with_memory(good), READERS["nodes"], "nodes")


def load_node_with_memory(amount: object) -> ApiObject:
    return decode_answer(put(CLUSTER["nodes"]["items"][0], ("status", "allocatable", "memory"), amount).encode())


def test_the_group_of_kueue_says_which_version_to_use() -> None:
    assert choose_api_version(CLUSTER["kueue.x-k8s.io"]) == "kueue.x-k8s.io/v1beta1"


def test_a_job_that_is_as_recorded_is_read() -> None:
    found = read_item(decode_answer(json.dumps(load_object("job-running")).encode()), read_remaining_job, "jobs")
    assert found is not None
    assert found.name == load_object("job-running")["metadata"]["name"]

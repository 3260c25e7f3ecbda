"""Errors in a profile: file, line, key and kind."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profile_files import catch_error, write
from runner.profiles.loading import load_profile
from runner.profiles.model import Profile
from runner.yaml_files.errors import ErrorKind, YamlError

ODD = "pools: {cpu: {node_affinity: [[{key: a, operator: "
# The file, the line and the key that the error names, its kind.
ERRORS = [
    ("{", 1, "", ErrorKind.SYNTAX),
    ("", 1, "", ErrorKind.EMPTY),
    ("- a", 1, "", ErrorKind.WRONG_TYPE),
    ("extends: gkee", 1, "extends", ErrorKind.NOT_FOUND),
    ("extends: 3", 1, "extends", ErrorKind.WRONG_TYPE),
    ("extends: [gke]", 1, "extends", ErrorKind.WRONG_TYPE),
    ("extends: no.yaml", 1, "extends", ErrorKind.NOT_FOUND),
    ('extends: "a\\0b.yaml"', 1, "extends", ErrorKind.NOT_FOUND),
    (f"extends: {'x' * 5000}.yaml", 1, "extends", ErrorKind.NOT_FOUND),
    ("name: a", 1, "pools", ErrorKind.MISSING_KEY),
    ("pools: {}", 1, "pools", ErrorKind.CONFLICT),
    ("pools:\n  cpu: {cpus: 1}", 2, "pools.cpu.memory", ErrorKind.MISSING_KEY),
    ("extends: gke\npols: {}", 2, "pols", ErrorKind.UNKNOWN_KEY),
    ("extends: gke\npools: {gpu: {memry: 1Gi}}", 2, "pools.gpu.memry", ErrorKind.UNKNOWN_KEY),
    ("extends: gke\ngpu: {requst: limit}", 2, "gpu.requst", ErrorKind.UNKNOWN_KEY),
    ("extends: gke\n'a b': 1", 2, "'a b'", ErrorKind.UNKNOWN_KEY),
    ("extends: gke\npools: {tpu: {cpus: 1}}", 2, "pools.tpu", ErrorKind.NOT_A_CHOICE),
    ("extends: gke\npools: [cpu]", 2, "pools", ErrorKind.WRONG_TYPE),
    ("extends: gke\npools: {cpu: 4}", 2, "pools.cpu", ErrorKind.WRONG_TYPE),
    ("extends: gke\npools: {cpu: {cpus: '4'}}", 2, "pools.cpu.cpus", ErrorKind.WRONG_TYPE),
    ("extends: gke\npools: {cpu: {cpus: 1.5}}", 2, "pools.cpu.cpus", ErrorKind.WRONG_TYPE),
    ("extends: gke\npools: {cpu: {cpus: 0}}", 2, "pools.cpu.cpus", ErrorKind.OUT_OF_RANGE),
    ("extends: gke\nstart_seconds: .nan", 2, "start_seconds", ErrorKind.WRONG_TYPE),
    ("extends: gke\nstart_seconds: .inf", 2, "start_seconds", ErrorKind.WRONG_TYPE),
    (f"extends: gke\nstart_seconds: {'9' * 400}", 2, "start_seconds", ErrorKind.OUT_OF_RANGE),
    ("extends: gke\nbackoff_limit: 21", 2, "backoff_limit", ErrorKind.OUT_OF_RANGE),
    ("extends: gke\ndo_not_disrupt: 'no'", 2, "do_not_disrupt", ErrorKind.WRONG_TYPE),
    ("extends: gke\nlabels: {benchmatrix/pool: x}", 2, "labels", ErrorKind.CONFLICT),
    ("extends: gke\nlabels: {team: a b}", 2, "labels.team", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nenvironment: {A: 4}", 2, "environment.A", ErrorKind.WRONG_TYPE),
    ("extends: gke\nenvironment: {A: on}", 2, "environment.A", ErrorKind.WRONG_TYPE),
    ("extends: gke\nenvironment: {A: {b: c}}", 2, "environment.A", ErrorKind.WRONG_TYPE),
    ("extends: gke\nenvironment: {4A: x}", 2, "environment.4A", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nenvironment: {A=: x}", 2, "environment.'A='", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nenvironment: {BENCH_CELL: x}", 2, "environment.BENCH_CELL", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nenvironment: {HOME: x}", 2, "environment.HOME", ErrorKind.WRONG_FORMAT),
    ('extends: gke\nenvironment: {A: "x\\0"}', 2, "environment.A", ErrorKind.WRONG_FORMAT),
    (f"extends: gke\nenvironment: {{A: {'x' * 32_769}}}", 2, "environment.A", ErrorKind.WRONG_FORMAT),
    (
        "extends: gke\nenvironment: {" + ", ".join(f"A{number}: {'x' * 30_000}" for number in range(9)) + "}",
        2,
        "environment",
        ErrorKind.CONFLICT,
    ),
    ("extends: gke\nnamespace: a.b", 2, "namespace", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nnamespace: ../x", 2, "namespace", ErrorKind.WRONG_FORMAT),
    (f"extends: gke\nnamespace: {'a' * 64}", 2, "namespace", ErrorKind.WRONG_FORMAT),
    ('extends: gke\nnamespace: "a\\n"', 2, "namespace", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nservice_account: A", 2, "service_account", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nstore_secret: a..b", 2, "store_secret", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nimage_pull_secrets: [a, -b]", 2, "image_pull_secrets[1]", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nimage_pull_secrets: a", 2, "image_pull_secrets", ErrorKind.WRONG_TYPE),
    ("extends: gke\nimage_pull_secrets: [~]", 2, "image_pull_secrets[0]", ErrorKind.WRONG_TYPE),
    ("extends: gke\npriority_class: a/b", 2, "priority_class", ErrorKind.WRONG_FORMAT),
    (
        "extends: gke\nservice_account_annotations: {a b: c}",
        2,
        "service_account_annotations.'a b'",
        ErrorKind.WRONG_FORMAT,
    ),
    (
        'extends: gke\nservice_account_annotations: {a: "b\\nc"}',
        2,
        "service_account_annotations.a",
        ErrorKind.WRONG_FORMAT,
    ),
    ("extends: gke\npools: {cpu: {memory: 4}}", 2, "pools.cpu.memory", ErrorKind.WRONG_TYPE),
    ("extends: gke\npools: {cpu: {memory: 4GB}}", 2, "pools.cpu.memory", ErrorKind.WRONG_FORMAT),
    ("extends: gke\npools: {cpu: {memory: 0Gi}}", 2, "pools.cpu.memory", ErrorKind.WRONG_FORMAT),
    ("extends: gke\ntmp_size: -1Gi", 2, "tmp_size", ErrorKind.WRONG_FORMAT),
    (
        "extends: gke\npools: {cpu: {node_selector: {a/b/c: d}}}",
        2,
        "pools.cpu.node_selector.'a/b/c'",
        ErrorKind.WRONG_FORMAT,
    ),
    (
        'extends: gke\npools: {cpu: {node_selector: {a: "b\\n"}}}',
        2,
        "pools.cpu.node_selector.a",
        ErrorKind.WRONG_FORMAT,
    ),
    (
        f"extends: gke\npools: {{cpu: {{node_selector: {{a: {'b' * 64}}}}}}}",
        2,
        "pools.cpu.node_selector.a",
        ErrorKind.WRONG_FORMAT,
    ),
    (f"extends: gke\n{ODD}In}}]]}}}}", 2, "pools.cpu.node_affinity[0][0].values", ErrorKind.CONFLICT),
    (f"extends: gke\n{ODD}Exists, values: [x]}}]]}}}}", 2, "pools.cpu.node_affinity[0][0].values", ErrorKind.CONFLICT),
    (f"extends: gke\n{ODD}Exist}}]]}}}}", 2, "pools.cpu.node_affinity[0][0].operator", ErrorKind.NOT_A_CHOICE),
    (
        f"extends: gke\n{ODD}In, values: [a b]}}]]}}}}",
        2,
        "pools.cpu.node_affinity[0][0].values[0]",
        ErrorKind.WRONG_FORMAT,
    ),
    ("extends: gke\npools: {cpu: {node_affinity: [[]]}}", 2, "pools.cpu.node_affinity[0]", ErrorKind.WRONG_LENGTH),
    ("extends: gke\npools: {cpu: {node_affinity: [{}]}}", 2, "pools.cpu.node_affinity[0]", ErrorKind.WRONG_TYPE),
    (
        "extends: gke\npools: {cpu: {tolerations: [{key: a, operator: Exists, value: b}]}}",
        2,
        "pools.cpu.tolerations[0].value",
        ErrorKind.CONFLICT,
    ),
    (
        "extends: gke\npools: {cpu: {tolerations: [{key: a, operator: Exists, effect: noschedule}]}}",
        2,
        "pools.cpu.tolerations[0].effect",
        ErrorKind.NOT_A_CHOICE,
    ),
    ("extends: gke\npools: {gpu: {cpus: 2, memory: 1Gi}}\ngpu: null", 3, "gpu", ErrorKind.CONFLICT),
    ("extends: gke\ngpu: T5", 2, "gpu.name", ErrorKind.NOT_A_CHOICE),
    ("extends: gke\ngpu_kinds: {T5: {}}", 2, "gpu_kinds", ErrorKind.UNKNOWN_KEY),
    ("extends: gke\ngpu: 4", 2, "gpu", ErrorKind.WRONG_TYPE),
    ("extends: gke\ngpu: {name: 4}", 2, "gpu.name", ErrorKind.WRONG_TYPE),
    ("extends: gke\narchitecture: x86", 2, "architecture", ErrorKind.NOT_A_CHOICE),
    ("extends: gke\nannotations: {a b: c}", 2, "annotations.'a b'", ErrorKind.WRONG_FORMAT),
    ("extends: kind\ngpu: {name: x, compute_capability: [7, 5], max_per_node: 1}", 2, "gpu", ErrorKind.CONFLICT),
    ("extends: gke\ngpu: {compute_capability: [7]}", 2, "gpu.compute_capability", ErrorKind.WRONG_LENGTH),
    ("extends: gke\ngpu: {compute_capability: [7, 5, 0]}", 2, "gpu.compute_capability", ErrorKind.WRONG_LENGTH),
    ("extends: gke\ngpu: {compute_capability: 7.5}", 2, "gpu.compute_capability", ErrorKind.WRONG_TYPE),
    ("extends: gke\ngpu: {resource: gpu}", 2, "gpu.resource", ErrorKind.WRONG_FORMAT),
    ("extends: gke\ngpu: {resource: kubernetes.io/gpu}", 2, "gpu.resource", ErrorKind.WRONG_FORMAT),
    ("extends: gke\ngpu: {resource: requests.x.com/gpu}", 2, "gpu.resource", ErrorKind.WRONG_FORMAT),
    ("extends: gke\ngpu: {device_class: A}", 2, "gpu.device_class", ErrorKind.WRONG_FORMAT),
    ("extends: gke\ngpu: {request: claims}", 2, "gpu.request", ErrorKind.NOT_A_CHOICE),
    ("extends: gke\nimages: {torch: {cpu: a}}", 2, "images.torch", ErrorKind.NOT_A_CHOICE),
    ("extends: gke\nimages: {pytorch: {tpu: a}}", 2, "images.pytorch.tpu", ErrorKind.NOT_A_CHOICE),
    ("extends: gke\nimages: {pytorch: {cpu: ' a'}}", 2, "images.pytorch.cpu", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nimages: {pytorch: {cpu: 'https://a/b'}}", 2, "images.pytorch.cpu", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nimages: {pytorch: {cpu: 'a/B'}}", 2, "images.pytorch.cpu", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nimages: {pytorch: {cpu: 'a@sha256:12'}}", 2, "images.pytorch.cpu", ErrorKind.WRONG_FORMAT),
    ("extends: gke\nimages: {pytorch: {cpu: ''}}", 2, "images.pytorch.cpu", ErrorKind.WRONG_FORMAT),
    ("extends: gke\ndata: {claim: c, mount_path: data}", 2, "data.mount_path", ErrorKind.WRONG_FORMAT),
    ("extends: gke\ndata: {claim: c, mount_path: /a/../b}", 2, "data.mount_path", ErrorKind.WRONG_FORMAT),
    ("extends: gke\ndata: {claim: c, mount_path: '/a:b'}", 2, "data.mount_path", ErrorKind.WRONG_FORMAT),
    ("extends: gke\ndata: {claim: c, mount_path: /tmp}", 2, "data.mount_path", ErrorKind.WRONG_FORMAT),
    ("extends: gke\ndata: {claim: c}", 2, "data.mount_path", ErrorKind.MISSING_KEY),
]


@pytest.mark.parametrize(("text", "line", "key", "kind"), ERRORS, ids=[f"{error[0][-50:]!r}" for error in ERRORS])
def test_an_error_names_file_line_and_key(tmp_path: Path, text: str, line: int, key: str, kind: ErrorKind) -> None:
    error = catch_error(tmp_path, text)
    assert (error.file, error.line, error.key, error.kind) == (str(tmp_path / "mine.yaml"), line, key, kind)
    assert len(str(error)) - len(str(tmp_path)) < 500


@pytest.mark.parametrize("base", ["mine.yaml", "./mine.yaml", "sub/../mine.yaml", "other.yaml", "link.yaml"])
def test_a_cycle_is_refused_however_it_is_written(tmp_path: Path, base: str) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path, "extends: mine.yaml\n", "other.yaml")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "mine.yaml")
    error = catch_error(tmp_path, f"\nextends: {base}\n")
    place = ("other.yaml", 1) if base == "other.yaml" else ("mine.yaml", 2)
    assert (Path(error.file).name, error.line, error.key, error.kind) == (*place, "extends", ErrorKind.CONFLICT)


def test_an_error_in_an_extended_file_names_that_file(tmp_path: Path) -> None:
    base = write(tmp_path, "extends: kind\n\npools: {cpu: {cpus: many}}\n", "base.yaml")
    error = catch_error(tmp_path, "extends: base.yaml\n")
    assert (error.file, error.line, error.key) == (base, 3, "pools.cpu.cpus")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["In", "Exists", "gke"]),
    lambda children: st.lists(children, max_size=2) | st.dictionaries(st.text(max_size=5), children, max_size=2),
    max_leaves=6,
)


def list_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values below the top."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, child in entries for place in ((*path, key), *list_places(child, (*path, key)))]


WHOLE = json.loads(load_profile("eks").model_dump_json())


def load_or_refuse(path: str) -> Profile | YamlError:
    try:
        return load_profile(path)
    except YamlError as error:
        return error


@settings(max_examples=200)
@given(place=st.sampled_from(list_places(WHOLE)), value=VALUES)
def test_any_value_in_any_place_is_accepted_or_refused_in_one_message(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[Any, ...], value: Any
) -> None:
    changed = json.loads(json.dumps(WHOLE))
    target = changed
    for part in place[:-1]:
        target = target[part]
    target[place[-1]] = value
    path = write(tmp_path_factory.getbasetemp(), json.dumps(changed), "changed.yaml")
    outcome = load_or_refuse(path)
    if isinstance(outcome, Profile):
        assert Profile.model_validate_json(outcome.to_json()) == outcome
    else:
        assert (outcome.file, outcome.line) == (path, 1)
        assert "\n" not in str(outcome)
        assert not re.search(r"pydantic|validation error|\[type=|Input should", str(outcome))


def test_a_chain_of_files_has_an_end(tmp_path: Path) -> None:
    for number in range(2000):
        write(tmp_path, f"extends: p{number + 1}.yaml\n", f"p{number}.yaml")
    error = catch_error(tmp_path, "extends: p0.yaml\n")
    assert (error.line, error.key, error.kind) == (1, "extends", ErrorKind.TOO_LARGE)
    assert "found the 20th file that extends another" in str(error)

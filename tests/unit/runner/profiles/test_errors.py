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
from runner.yaml_input import YamlError

ODD = "pools: {cpu: {node_affinity: [[{key: a, operator: "
# The file, the line and the key that the error names.
ERRORS = [
    ("{", 1, ""),
    ("", 1, ""),
    ("- a", 1, ""),
    ("extends: gkee", 1, "extends"),
    ("extends: 3", 1, "extends"),
    ("extends: [gke]", 1, "extends"),
    ("extends: no.yaml", 1, "extends"),
    ('extends: "a\\0b.yaml"', 1, "extends"),
    (f"extends: {'x' * 5000}.yaml", 1, "extends"),
    ("name: a", 1, "pools"),
    ("pools: {}", 1, "pools"),
    ("pools:\n  cpu: {cpus: 1}", 2, "pools.cpu.memory"),
    ("extends: gke\npols: {}", 2, "pols"),
    ("extends: gke\npools: {gpu: {memry: 1Gi}}", 2, "pools.gpu.memry"),
    ("extends: gke\ngpu: {requst: limit}", 2, "gpu.requst"),
    ("extends: gke\n'a b': 1", 2, "'a b'"),
    ("extends: gke\npools: {tpu: {cpus: 1}}", 2, "pools.tpu"),
    ("extends: gke\npools: [cpu]", 2, "pools"),
    ("extends: gke\npools: {cpu: 4}", 2, "pools.cpu"),
    ("extends: gke\npools: {cpu: {cpus: '4'}}", 2, "pools.cpu.cpus"),
    ("extends: gke\npools: {cpu: {cpus: 1.5}}", 2, "pools.cpu.cpus"),
    ("extends: gke\npools: {cpu: {cpus: 0}}", 2, "pools.cpu.cpus"),
    ("extends: gke\nstart_seconds: .nan", 2, "start_seconds"),
    ("extends: gke\nstart_seconds: .inf", 2, "start_seconds"),
    (f"extends: gke\nstart_seconds: {'9' * 400}", 2, "start_seconds"),
    ("extends: gke\nbackoff_limit: 21", 2, "backoff_limit"),
    ("extends: gke\ndo_not_disrupt: 'no'", 2, "do_not_disrupt"),
    ("extends: gke\nlabels: {benchmatrix/pool: x}", 2, "labels"),
    ("extends: gke\nlabels: {team: a b}", 2, "labels.team"),
    ("extends: gke\nenvironment: {A: 4}", 2, "environment.A"),
    ("extends: gke\nenvironment: {A: on}", 2, "environment.A"),
    ("extends: gke\nenvironment: {A: {b: c}}", 2, "environment.A"),
    ("extends: gke\nenvironment: {4A: x}", 2, "environment.4A"),
    ("extends: gke\nenvironment: {A=: x}", 2, "environment.'A='"),
    ("extends: gke\nenvironment: {BENCH_CELL: x}", 2, "environment.BENCH_CELL"),
    ("extends: gke\nenvironment: {HOME: x}", 2, "environment.HOME"),
    ('extends: gke\nenvironment: {A: "x\\0"}', 2, "environment.A"),
    (f"extends: gke\nenvironment: {{A: {'x' * 32_769}}}", 2, "environment.A"),
    (
        "extends: gke\nenvironment: {" + ", ".join(f"A{number}: {'x' * 30_000}" for number in range(9)) + "}",
        2,
        "environment",
    ),
    ("extends: gke\nnamespace: a.b", 2, "namespace"),
    ("extends: gke\nnamespace: ../x", 2, "namespace"),
    (f"extends: gke\nnamespace: {'a' * 64}", 2, "namespace"),
    ('extends: gke\nnamespace: "a\\n"', 2, "namespace"),
    ("extends: gke\nservice_account: A", 2, "service_account"),
    ("extends: gke\nstore_secret: a..b", 2, "store_secret"),
    ("extends: gke\nimage_pull_secrets: [a, -b]", 2, "image_pull_secrets[1]"),
    ("extends: gke\nimage_pull_secrets: a", 2, "image_pull_secrets"),
    ("extends: gke\nimage_pull_secrets: [~]", 2, "image_pull_secrets[0]"),
    ("extends: gke\npriority_class: a/b", 2, "priority_class"),
    (
        "extends: gke\nservice_account_annotations: {a b: c}",
        2,
        "service_account_annotations.'a b'",
    ),
    (
        'extends: gke\nservice_account_annotations: {a: "b\\nc"}',
        2,
        "service_account_annotations.a",
    ),
    ("extends: gke\npools: {cpu: {memory: 4}}", 2, "pools.cpu.memory"),
    ("extends: gke\npools: {cpu: {memory: 4GB}}", 2, "pools.cpu.memory"),
    ("extends: gke\npools: {cpu: {memory: 0Gi}}", 2, "pools.cpu.memory"),
    ("extends: gke\ntmp_size: -1Gi", 2, "tmp_size"),
    (
        "extends: gke\npools: {cpu: {node_selector: {a/b/c: d}}}",
        2,
        "pools.cpu.node_selector.'a/b/c'",
    ),
    (
        'extends: gke\npools: {cpu: {node_selector: {a: "b\\n"}}}',
        2,
        "pools.cpu.node_selector.a",
    ),
    (
        f"extends: gke\npools: {{cpu: {{node_selector: {{a: {'b' * 64}}}}}}}",
        2,
        "pools.cpu.node_selector.a",
    ),
    (f"extends: gke\n{ODD}In}}]]}}}}", 2, "pools.cpu.node_affinity[0][0].values"),
    (f"extends: gke\n{ODD}Exists, values: [x]}}]]}}}}", 2, "pools.cpu.node_affinity[0][0].values"),
    (f"extends: gke\n{ODD}Exist}}]]}}}}", 2, "pools.cpu.node_affinity[0][0].operator"),
    (
        f"extends: gke\n{ODD}In, values: [a b]}}]]}}}}",
        2,
        "pools.cpu.node_affinity[0][0].values[0]",
    ),
    ("extends: gke\npools: {cpu: {node_affinity: [[]]}}", 2, "pools.cpu.node_affinity[0]"),
    ("extends: gke\npools: {cpu: {node_affinity: [{}]}}", 2, "pools.cpu.node_affinity[0]"),
    (
        "extends: gke\npools: {cpu: {tolerations: [{key: a, operator: Exists, value: b}]}}",
        2,
        "pools.cpu.tolerations[0].value",
    ),
    (
        "extends: gke\npools: {cpu: {tolerations: [{key: a, operator: Exists, effect: noschedule}]}}",
        2,
        "pools.cpu.tolerations[0].effect",
    ),
    ("extends: gke\npools: {gpu: {cpus: 2, memory: 1Gi}}\ngpu: null", 3, "gpu"),
    ("extends: gke\ngpu: T5", 2, "gpu.name"),
    ("extends: gke\ngpu_kinds: {T5: {}}", 2, "gpu_kinds"),
    ("extends: gke\ngpu: 4", 2, "gpu"),
    ("extends: gke\ngpu: {name: 4}", 2, "gpu.name"),
    ("extends: gke\narchitecture: x86", 2, "architecture"),
    ("extends: gke\nannotations: {a b: c}", 2, "annotations.'a b'"),
    ("extends: kind\ngpu: {name: x, compute_capability: [7, 5], max_per_node: 1}", 2, "gpu"),
    ("extends: gke\ngpu: {compute_capability: [7]}", 2, "gpu.compute_capability"),
    ("extends: gke\ngpu: {compute_capability: [7, 5, 0]}", 2, "gpu.compute_capability"),
    ("extends: gke\ngpu: {compute_capability: 7.5}", 2, "gpu.compute_capability"),
    ("extends: gke\ngpu: {resource: gpu}", 2, "gpu.resource"),
    ("extends: gke\ngpu: {resource: kubernetes.io/gpu}", 2, "gpu.resource"),
    ("extends: gke\ngpu: {resource: requests.x.com/gpu}", 2, "gpu.resource"),
    ("extends: gke\ngpu: {device_class: A}", 2, "gpu.device_class"),
    ("extends: gke\ngpu: {request: claims}", 2, "gpu.request"),
    ("extends: gke\nimages: {torch: {cpu: a}}", 2, "images.torch"),
    ("extends: gke\nimages: {pytorch: {tpu: a}}", 2, "images.pytorch.tpu"),
    ("extends: gke\nimages: {pytorch: {cpu: ' a'}}", 2, "images.pytorch.cpu"),
    ("extends: gke\nimages: {pytorch: {cpu: 'https://a/b'}}", 2, "images.pytorch.cpu"),
    ("extends: gke\nimages: {pytorch: {cpu: 'a/B'}}", 2, "images.pytorch.cpu"),
    ("extends: gke\nimages: {pytorch: {cpu: 'a@sha256:12'}}", 2, "images.pytorch.cpu"),
    ("extends: gke\nimages: {pytorch: {cpu: ''}}", 2, "images.pytorch.cpu"),
    ("extends: gke\ndata: {claim: c, mount_path: data}", 2, "data.mount_path"),
    ("extends: gke\ndata: {claim: c, mount_path: /a/../b}", 2, "data.mount_path"),
    ("extends: gke\ndata: {claim: c, mount_path: '/a:b'}", 2, "data.mount_path"),
    ("extends: gke\ndata: {claim: c, mount_path: /tmp}", 2, "data.mount_path"),
    ("extends: gke\ndata: {claim: c}", 2, "data.mount_path"),
]


@pytest.mark.parametrize(("text", "line", "key"), ERRORS, ids=[f"{error[0][-50:]!r}" for error in ERRORS])
def test_an_error_names_file_line_and_key(tmp_path: Path, text: str, line: int, key: str) -> None:
    error = catch_error(tmp_path, text)
    assert (error.file, error.line, error.key) == (str(tmp_path / "mine.yaml"), line, key)
    assert len(str(error)) - len(str(tmp_path)) < 500


@pytest.mark.parametrize("base", ["mine.yaml", "./mine.yaml", "sub/../mine.yaml", "other.yaml", "link.yaml"])
def test_a_cycle_is_refused_however_it_is_written(tmp_path: Path, base: str) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path, "extends: mine.yaml\n", "other.yaml")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "mine.yaml")
    error = catch_error(tmp_path, f"\nextends: {base}\n")
    place = ("other.yaml", 1) if base == "other.yaml" else ("mine.yaml", 2)
    assert (Path(error.file).name, error.line, error.key) == (*place, "extends")


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
    assert (error.line, error.key) == (1, "extends")
    assert "found the 20th file that extends another" in str(error)

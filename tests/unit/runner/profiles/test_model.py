"""Profiles go in; what cells need to know, or one message with file, line and key, must come out."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from bench.errors import UserError
from factories import make_cell
from runner.checkout import ROOT
from runner.profiles.loading import BUILTIN_PROFILES, find_profile, load_profile
from runner.profiles.model import Profile

T4 = {"name": "Tesla T4", "compute_capability": [7, 5], "max_per_node": 4}
LEAST = {"pools": {"cpu": {"cpus": 1, "memory": "1Gi"}}}


def write(folder: Path, text: str, name: str = "mine.yaml") -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


def read_fault(folder: Path, text: str) -> str:
    """Return what is said about a file, without its folder."""
    return catch(write(folder, text)).replace(f"{folder}/", "")


def catch(name: str) -> str:
    with pytest.raises(UserError) as caught:
        load_profile(name)
    message = str(caught.value)
    assert "\n" not in message
    assert not re.search(r"pydantic|validation error|\[type=|pattern|Input should|regex", message)
    return message


@pytest.mark.parametrize("name", BUILTIN_PROFILES)
def test_a_built_in_profile_is_valid_and_has_its_name(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.explain_unsupported(make_cell()) is None


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ("gke_project_us-central1-a_bench", "gke"),
        ("arn:aws:eks:us-east-1:123456789012:cluster/bench", "eks"),
        ("arn:aws-cn:eks:cn-north-1:123456789012:cluster/bench", "eks"),
        ("ada@bench.us-east-1.eksctl.io", "eks"),
        ("kind-bench", "kind"),
    ],
)
def test_a_context_tells_its_profile(context: str, name: str) -> None:
    assert find_profile(None, context).name == name


def test_a_profile_that_is_named_comes_before_the_contexts() -> None:
    assert find_profile("eks", "kind-bench").name == "eks"


def test_a_context_that_tells_nothing_needs_a_profile() -> None:
    with pytest.raises(UserError, match=r"context minikube: .* add --profile eks, gke, kind or the path of yours"):
        find_profile(None, "minikube")


# extends


def test_a_profile_has_what_it_says_and_the_rest_of_the_one_it_extends(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, "extends: gke\npools: {gpu: {cpus: 7}}\nenvironment: {A: b}\n"))
    base = load_profile("gke")
    assert profile.pools["gpu"] == base.pools["gpu"].model_copy(update={"cpus": 7})
    assert profile == base.model_copy(
        update={"name": "mine", "environment": {"A": "b"}, "pools": base.pools | {"gpu": profile.pools["gpu"]}}
    )


def test_lists_are_replaced_whole(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, "extends: gke\npools: {gpu: {tolerations: []}}\n"))
    assert profile.pools["gpu"].tolerations == ()


def test_profiles_extend_one_another_from_their_own_folders(tmp_path: Path) -> None:
    write(tmp_path, "extends: base.yaml\nstart_seconds: 1\n", "teams/a/mine.yaml")
    write(tmp_path, "extends: ../all.yaml\nstart_seconds: 2\ngrace_seconds: 2\n", "teams/a/base.yaml")
    write(tmp_path, "extends: kind\ngrace_seconds: 3\ntmp_size: 3Gi\n", "teams/all.yaml")
    profile = load_profile(str(tmp_path / "teams/a/mine.yaml"))
    assert (profile.start_seconds, profile.termination_grace_period_seconds, profile.tmp_size) == (1, 2, "3Gi")
    assert profile.name == "mine"


def test_null_removes_what_the_other_says(tmp_path: Path) -> None:
    write(tmp_path, "extends: gke\nstore_secret: s\ndo_not_disrupt: false\nenvironment: {A: a, B: b}\n", "base.yaml")
    own = (
        "extends: base.yaml\nstore_secret: null\ndo_not_disrupt: ~\nenvironment: {A: null}\npools: {gpu: null}\ngpu:\n"
    )
    profile = load_profile(write(tmp_path, own))
    assert (profile.store_secret, profile.do_not_disrupt, profile.environment) == (None, True, {"B": "b"})
    assert (set(profile.pools), profile.gpu) == ({"cpu"}, None)


def test_a_file_may_have_the_name_of_the_built_in_profile_that_it_extends(tmp_path: Path) -> None:
    assert load_profile(write(tmp_path, "extends: gke\nstart_seconds: 1\n", "gke.yaml")).start_seconds == 1


@pytest.mark.parametrize("base", ["mine.yaml", "./mine.yaml", "sub/../mine.yaml", "other.yaml", "link.yaml"])
def test_a_cycle_is_refused_in_whatever_words(tmp_path: Path, base: str) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path, "extends: mine.yaml\n", "other.yaml")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "mine.yaml")
    message = read_fault(tmp_path, f"\nextends: {base}\n")
    assert "which extends this file in turn; remove one of the two" in message
    assert re.match(r"(mine|other)\.yaml:[12]: extends: ", message)


def test_a_fault_in_an_extended_file_names_that_file(tmp_path: Path) -> None:
    write(tmp_path, "extends: kind\n\npools: {cpu: {cpus: many}}\n", "base.yaml")
    assert read_fault(tmp_path, "extends: base.yaml\n").startswith("base.yaml:3: pools.cpu.cpus: found the text 'many'")


# Faults

ODD = "pools: {cpu: {node_affinity: [[{key: a, operator: "
FAULTS = [
    ("{", 1, "", "is not YAML"),
    ("", 1, "", "the file is empty, expected a profile; write `extends: gke`"),
    ("- a", 1, "", "found no keys, expected a profile"),
    (
        "extends: gkee",
        1,
        "extends",
        "found 'gkee', expected a profile: eks, gke, kind or the path of a .yaml file; did you",
    ),
    ("extends: 3", 1, "extends", "found no name, expected a profile"),
    ("extends: [gke]", 1, "extends", "found no name, expected a profile"),
    ("extends: no.yaml", 1, "extends", "there is no file"),
    ('extends: "a\\0b.yaml"', 1, "extends", "there is no file"),
    (f"extends: {'x' * 5000}.yaml", 1, "extends", "there is no file"),
    ("name: a", 1, "pools", "is missing; docs/profiles.md says what it takes"),
    ("pools: {}", 1, "pools", "is empty"),
    ("pools:\n  cpu: {cpus: 1}", 2, "pools.cpu.memory", "is missing"),
    ("extends: gke\npols: {}", 2, "pols", "unknown key; did you mean 'pools'?"),
    ("extends: gke\npools: {gpu: {memry: 1Gi}}", 2, "pools.gpu.memry", "unknown key; did you mean 'memory'?"),
    ("extends: gke\ngpu: {requst: limit}", 2, "gpu.requst", "unknown key; did you mean 'request'?"),
    ("extends: gke\n'a b': 1", 2, "'a b'", "unknown key; known are name"),
    ("extends: gke\npools: {tpu: {cpus: 1}}", 2, "pools.tpu", "found the key tpu, expected 'cpu' or 'gpu'; did you"),
    ("extends: gke\npools: [cpu]", 2, "pools", "found a list, expected keys with values"),
    ("extends: gke\npools: {cpu: 4}", 2, "pools.cpu", "found the number 4, expected keys with values"),
    (
        "extends: gke\npools: {cpu: {cpus: '4'}}",
        2,
        "pools.cpu.cpus",
        "found the text '4', expected a whole number; write 4",
    ),
    ("extends: gke\npools: {cpu: {cpus: 1.5}}", 2, "pools.cpu.cpus", "found the number 1.5, expected a whole number"),
    (
        "extends: gke\npools: {cpu: {cpus: 0}}",
        2,
        "pools.cpu.cpus",
        "found the number 0, expected a whole number, at least 1",
    ),
    ("extends: gke\nstart_seconds: .nan", 2, "start_seconds", "expected a whole number"),
    ("extends: gke\nstart_seconds: .inf", 2, "start_seconds", "expected a whole number"),
    (f"extends: gke\nstart_seconds: {'9' * 400}", 2, "start_seconds", "expected a whole number, at most 1000000000"),
    ("extends: gke\nbackoff_limit: 21", 2, "backoff_limit", "at most 20"),
    ("extends: gke\ndo_not_disrupt: 'no'", 2, "do_not_disrupt", "found the text 'no', expected true or false"),
    ("extends: gke\nlabels: {benchmatrix/pool: x}", 2, "labels", "benchmatrix/pool is set by the tool"),
    ("extends: gke\nlabels: {team: a b}", 2, "labels.team", "expected a label's value"),
    ("extends: gke\nenvironment: {A: 4}", 2, "environment.A", "found the number 4, expected a text; put it in quotes"),
    ("extends: gke\nenvironment: {A: on}", 2, "environment.A", "expected a text; put it in quotes"),
    ("extends: gke\nenvironment: {A: {b: c}}", 2, "environment.A", "found a mapping, expected a text"),
    ("extends: gke\nenvironment: {4A: x}", 2, "environment.4A", "found the key '4A', expected a variable's name"),
    ("extends: gke\nenvironment: {A=: x}", 2, "environment.'A='", "expected a variable's name"),
    (
        "extends: gke\nenvironment: {BENCH_CELL: x}",
        2,
        "environment.BENCH_CELL",
        "HOME and BENCH_... are set by the tool",
    ),
    ("extends: gke\nenvironment: {HOME: x}", 2, "environment.HOME", "HOME and BENCH_... are set by the tool"),
    ('extends: gke\nenvironment: {A: "x\\0"}', 2, "environment.A", "none of them NUL"),
    (f"extends: gke\nenvironment: {{A: {'x' * 32_769}}}", 2, "environment.A", "expected at most 32,768 bytes"),
    (
        "extends: gke\nenvironment: {" + ", ".join(f"A{number}: {'x' * 30_000}" for number in range(9)) + "}",
        2,
        "environment",
        "has 270,027 bytes in all, expected at most 262,144",
    ),
    ("extends: gke\nnamespace: a.b", 2, "namespace", "found the text 'a.b', expected a name of a-z"),
    ("extends: gke\nnamespace: ../x", 2, "namespace", "expected a name of a-z"),
    (f"extends: gke\nnamespace: {'a' * 64}", 2, "namespace", "at most 63 characters"),
    ('extends: gke\nnamespace: "a\\n"', 2, "namespace", "expected a name of a-z"),
    ("extends: gke\nservice_account: A", 2, "service_account", "expected a name of a-z"),
    ("extends: gke\nstore_secret: a..b", 2, "store_secret", "expected a name of a-z"),
    ("extends: gke\nimage_pull_secrets: [a, -b]", 2, "image_pull_secrets[1]", "found the text '-b', expected a name"),
    ("extends: gke\nimage_pull_secrets: a", 2, "image_pull_secrets", "found the text 'a', expected a list"),
    ("extends: gke\nimage_pull_secrets: [~]", 2, "image_pull_secrets[0]", "found nothing (`~`), expected a text"),
    ("extends: gke\npriority_class: a/b", 2, "priority_class", "expected a name of a-z"),
    ("extends: gke\nservice_account_annotations: {a b: c}", 2, "service_account_annotations.'a b'", "a label's key"),
    (
        'extends: gke\nservice_account_annotations: {a: "b\\nc"}',
        2,
        "service_account_annotations.a",
        "one line of at most",
    ),
    ("extends: gke\npools: {cpu: {memory: 4}}", 2, "pools.cpu.memory", "found the number 4, expected a text"),
    (
        "extends: gke\npools: {cpu: {memory: 4GB}}",
        2,
        "pools.cpu.memory",
        "found the text '4GB', expected an amount of bytes",
    ),
    ("extends: gke\npools: {cpu: {memory: 0Gi}}", 2, "pools.cpu.memory", "expected an amount of bytes"),
    ("extends: gke\ntmp_size: -1Gi", 2, "tmp_size", "expected an amount of bytes"),
    ("extends: gke\npools: {cpu: {node_selector: {a/b/c: d}}}", 2, "pools.cpu.node_selector.'a/b/c'", "a label's key"),
    ('extends: gke\npools: {cpu: {node_selector: {a: "b\\n"}}}', 2, "pools.cpu.node_selector.a", "a label's value"),
    (
        f"extends: gke\npools: {{cpu: {{node_selector: {{a: {'b' * 64}}}}}}}",
        2,
        "pools.cpu.node_selector.a",
        "a label's value",
    ),
    (f"extends: gke\n{ODD}In}}]]}}}}", 2, "pools.cpu.node_affinity[0][0].values", "`In` needs a list of at least one"),
    (
        f"extends: gke\n{ODD}Exists, values: [x]}}]]}}}}",
        2,
        "pools.cpu.node_affinity[0][0].values",
        "`Exists` takes none",
    ),
    (f"extends: gke\n{ODD}Exist}}]]}}}}", 2, "pools.cpu.node_affinity[0][0].operator", "did you mean 'Exists'?"),
    (f"extends: gke\n{ODD}In, values: [a b]}}]]}}}}", 2, "pools.cpu.node_affinity[0][0].values[0]", "a label's value"),
    (
        "extends: gke\npools: {cpu: {node_affinity: [[]]}}",
        2,
        "pools.cpu.node_affinity[0]",
        "found a list of 0, expected at least 1",
    ),
    (
        "extends: gke\npools: {cpu: {node_affinity: [{}]}}",
        2,
        "pools.cpu.node_affinity[0]",
        "found a mapping, expected a list",
    ),
    (
        "extends: gke\npools: {cpu: {tolerations: [{key: a, operator: Exists, value: b}]}}",
        2,
        "pools.cpu.tolerations[0].value",
        "`Exists` takes none",
    ),
    (
        "extends: gke\npools: {cpu: {tolerations: [{key: a, operator: Exists, effect: noschedule}]}}",
        2,
        "pools.cpu.tolerations[0].effect",
        "did you mean 'NoSchedule'?",
    ),
    ("extends: gke\ngpu: null", 2, "gpu", "say what GPUs the nodes of the pool `gpu` have"),
    ("extends: kind\ngpu: {name: x, compute_capability: [7, 5], max_per_node: 1}", 2, "gpu", "there is no pool `gpu`"),
    (
        "extends: gke\ngpu: {compute_capability: [7]}",
        2,
        "gpu.compute_capability",
        "found a list of 1, expected one more",
    ),
    (
        "extends: gke\ngpu: {compute_capability: [7, 5, 0]}",
        2,
        "gpu.compute_capability",
        "a list of 3, expected at most 2",
    ),
    (
        "extends: gke\ngpu: {compute_capability: 7.5}",
        2,
        "gpu.compute_capability",
        "found the number 7.5, expected a list",
    ),
    ("extends: gke\ngpu: {resource: gpu}", 2, "gpu.resource", "such as `nvidia.com/gpu`"),
    ("extends: gke\ngpu: {resource: kubernetes.io/gpu}", 2, "gpu.resource", "such as `nvidia.com/gpu`"),
    ("extends: gke\ngpu: {resource: requests.x.com/gpu}", 2, "gpu.resource", "such as `nvidia.com/gpu`"),
    ("extends: gke\ngpu: {device_class: A}", 2, "gpu.device_class", "expected a name of a-z"),
    ("extends: gke\ngpu: {request: claims}", 2, "gpu.request", "expected 'limit' or 'claim'; did you mean 'claim'?"),
    ("extends: gke\nimages: {torch: {cpu: a}}", 2, "images.torch", "found the key torch, expected 'pytorch'"),
    (
        "extends: gke\nimages: {pytorch: {tpu: a}}",
        2,
        "images.pytorch.tpu",
        "found the key tpu, expected 'cpu' or 'gpu'",
    ),
    ("extends: gke\nimages: {pytorch: {cpu: ' a'}}", 2, "images.pytorch.cpu", "found the text ' a', expected an image"),
    ("extends: gke\nimages: {pytorch: {cpu: 'https://a/b'}}", 2, "images.pytorch.cpu", "expected an image"),
    ("extends: gke\nimages: {pytorch: {cpu: 'a/B'}}", 2, "images.pytorch.cpu", "expected an image"),
    ("extends: gke\nimages: {pytorch: {cpu: 'a@sha256:12'}}", 2, "images.pytorch.cpu", "expected an image"),
    ("extends: gke\nimages: {pytorch: {cpu: ''}}", 2, "images.pytorch.cpu", "expected an image"),
    ("extends: gke\ndata: {claim: c, mount_path: data}", 2, "data.mount_path", "the path of a folder from the root"),
    ("extends: gke\ndata: {claim: c, mount_path: /a/../b}", 2, "data.mount_path", "the path of a folder from the root"),
    ("extends: gke\ndata: {claim: c, mount_path: '/a:b'}", 2, "data.mount_path", "the path of a folder from the root"),
    ("extends: gke\ndata: {claim: c, mount_path: /tmp}", 2, "data.mount_path", "another folder than /, /dev"),
    ("extends: gke\ndata: {claim: c}", 2, "data.mount_path", "is missing"),
]


@pytest.mark.parametrize(("text", "line", "key", "words"), FAULTS, ids=[f"{fault[0][-50:]!r}" for fault in FAULTS])
def test_a_fault_is_one_message_with_file_line_and_key(
    tmp_path: Path, text: str, line: int, key: str, words: str
) -> None:
    message = read_fault(tmp_path, text)
    assert message.startswith(f"mine.yaml:{line}: {key}: " if key else f"mine.yaml:{line}: ")
    assert words in message
    assert len(message) < 500


@pytest.mark.parametrize("name", ["gkee", "", "/", "no", "GKE", "x" * 5000])
def test_a_name_of_no_profile_gets_the_nearest(name: str) -> None:
    message = catch(name)
    assert message.startswith(f"--profile {name}: is none; ")
    assert message.endswith("or give the path of a .yaml file")


def test_a_file_that_is_not_there_is_named() -> None:
    assert catch("no/such.yaml") == "no/such.yaml: there is no such file; give the path of a YAML file"


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


@settings(max_examples=200)
@given(place=st.sampled_from(list_places(WHOLE)), value=VALUES)
def test_whatever_stands_in_a_place_is_taken_or_told_in_one_message(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[Any, ...], value: Any
) -> None:
    changed = json.loads(json.dumps(WHOLE))
    target = changed
    for part in place[:-1]:
        target = target[part]
    target[place[-1]] = value
    path = write(tmp_path_factory.getbasetemp(), json.dumps(changed), "changed.yaml")
    try:
        profile = load_profile(path)
    except UserError as error:
        message = str(error)
        assert message.startswith(f"{path}:1: ")
        assert "\n" not in message
        assert not re.search(r"pydantic|validation error|\[type=|Input should", message)
    else:
        assert Profile.model_validate_json(profile.to_json()) == profile


# Cells and profiles


def test_a_namespace_of_the_command_line_is_checked() -> None:
    profile = load_profile("kind")
    assert profile.in_namespace("team-a").namespace == "team-a"
    for name in ("../kube-system", "a/b", "", "A", "a\n", "x" * 64):
        with pytest.raises(UserError, match=r"^--namespace: found .* expected a name of a-z"):
            profile.in_namespace(name)


def make(**keys: Any) -> Profile:
    return Profile.model_validate_json(json.dumps({"name": "mine", **LEAST, **keys}))


def test_a_cell_needs_its_pool_and_its_data() -> None:
    data = {"claim": "data", "mount_path": "/data"}
    assert make().explain_unsupported(make_cell(device="gpu")) == "the profile mine has no pool 'gpu'"
    assert (
        make().explain_unsupported(make_cell(data_dir="/data/x")) == "data_dir: the profile mine has no `data` volume"
    )
    assert make(data=data).explain_unsupported(make_cell(data_dir="/data/x")) is None
    obstacle = make(data=data).explain_unsupported(make_cell(data_dir="/database"))
    assert obstacle == "data_dir: /database is not in /data, the data of the profile mine"


def test_a_folder_that_leaves_the_volume_is_not_in_it() -> None:
    profile = make(data={"claim": "data", "mount_path": "/data"})
    assert profile.explain_unsupported(make_cell(data_dir="/data/../etc")) is not None


def test_the_gpus_are_those_of_the_profile() -> None:
    kind = load_profile("gke").gpu_kind
    assert kind is not None
    assert (kind.name, kind.compute_capability, kind.num_gpus) == ("Tesla T4", (7, 5), 4)
    assert load_profile("kind").gpu_kind is None


# docs/profiles.md


def list_keys(model: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """Return every key of a profile, `pools.*.node_affinity[][].key` for one, with its default."""
    keys: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        keys[path] = ... if field.is_required() else field.default
        keys |= list_part_keys(field.annotation, path)
    return keys


def list_part_keys(annotation: Any, path: str) -> dict[str, Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return list_keys(annotation, f"{path}.")
    suffix = {tuple: "[]", dict: ".*"}.get(getattr(annotation, "__origin__", None), "")
    found = {}
    for part in get_args(annotation):
        found |= list_part_keys(part, path + suffix)
    return found


def test_the_documentation_has_every_key_and_its_default() -> None:
    table = (ROOT / "docs/profiles.md").read_text().partition("## Keys")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (?:`([^`]*)`|(needed)) \| \S", table, re.MULTILINE)
    documented = {key: ... if needed else json.loads(default) for key, default, needed in rows}
    keys = list_keys(Profile)
    defaults = {key: value if value is ... else json.loads(json.dumps(value)) for key, value in keys.items()}
    assert documented == {"extends": None} | defaults


def test_every_example_of_the_documentation_is_a_profile(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/profiles.md").read_text(), re.S)
    assert len(examples) >= 3
    for number, example in enumerate(examples):
        load_profile(write(tmp_path, example, f"{number}.yaml"))

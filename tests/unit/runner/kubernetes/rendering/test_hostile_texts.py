"""Whatever text a value of a Job is, it stays in its place, and arrives as it was."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import jinja2
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.schema import Cell
from factories import make_cell
from hostile_texts import HOSTILE_TEXTS, texts
from job_manifests import (
    CONTAINER,
    KINDS,
    OWNER,
    POD,
    RUN_ID,
    SLOTS,
    collect_full_values,
    load,
    make_full_profile,
    make_key,
    make_renderer,
    plan,
    render,
)
from runner.kubernetes.rendering.job_template import (
    JobOwner,
    JobShape,
    escape_variable,
    quote_yaml,
    read_manifest,
    render_manifest,
)
from runner.profiles.model import CompileCache, Profile
from runner.profiles.pools import Pool


def fill(values: dict[str, object]) -> dict[str, object]:
    """Return the leaves of a Job by their paths."""
    return dict(walk(json.loads(JobShape.render(values).fill(SLOTS))))


def walk(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in entries:
            yield from walk(child, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def env(number: int) -> str:
    return f"{CONTAINER}.env.{number}.value"


Values = dict[str, object]


def put(key: str) -> Callable[[Values, str], Values]:
    return lambda values, text: values | {key: text}


def put_in_profile(make: Callable[[Profile, str], dict[str, Any]]) -> Callable[[Values, str], Values]:
    def change(values: Values, text: str) -> Values:
        profile = values["profile"]
        assert isinstance(profile, Profile)
        return values | {"profile": profile.model_copy(update=make(profile, text))}

    return change


def put_in_pool(make: Callable[[Pool, str], dict[str, Any]]) -> Callable[[Values, str], Values]:
    def change(values: Values, text: str) -> Values:
        pool = values["pool"]
        assert isinstance(pool, Pool)
        return values | {"pool": pool.model_copy(update=make(pool, text))}

    return change


TERM = f"{POD}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0"
# By the value: how it is put there, past all checks, and the paths that hold it then; `$`: as a variable.
PLACES: dict[str, tuple[Callable[[Values, str], Values], list[str]]] = {
    "store": (put("store_url"), ["$" + env(4)]),
    "image": (put("image"), [f"{CONTAINER}.image", "$" + env(5)]),
    "git revision": (put("git_revision"), ["$" + env(6)]),
    "variable": (
        put_in_profile(lambda profile, text: {"environment": {"MINE": text}}),
        ["$" + env(8)],
    ),
    "variable's name": (
        put_in_profile(lambda profile, text: {"environment": {text: "value"}}),
        [f"{CONTAINER}.env.8.name"],
    ),
    "queue": (
        put("queue"),
        ["metadata.labels.kueue.x-k8s.io/queue-name", "spec.template.metadata.labels.kueue.x-k8s.io/queue-name"],
    ),
    "namespace": (put_in_profile(lambda profile, text: {"namespace": text}), ["metadata.namespace"]),
    "service account": (put_in_profile(lambda _, text: {"service_account": text}), [f"{POD}.serviceAccountName"]),
    "priority": (put_in_profile(lambda profile, text: {"priority_class": text}), [f"{POD}.priorityClassName"]),
    "pull key": (put_in_profile(lambda _, text: {"image_pull_secrets": (text,)}), [f"{POD}.imagePullSecrets.0.name"]),
    "store secret": (
        put_in_profile(lambda profile, text: {"store_secret": text}),
        [f"{CONTAINER}.envFrom.0.secretRef.name"],
    ),
    "signing secret": (
        put_in_profile(lambda _, text: {"signing_secret": text}),
        [f"{POD}.volumes.4.secret.secretName"],
    ),
    "claim": (
        put_in_profile(
            lambda profile, text: {"data": profile.data and profile.data.model_copy(update={"claim": text})}
        ),
        [f"{POD}.volumes.2.persistentVolumeClaim.claimName"],
    ),
    "mount path": (
        put_in_profile(
            lambda profile, text: {"data": profile.data and profile.data.model_copy(update={"mount_path": text})}
        ),
        [f"{CONTAINER}.volumeMounts.2.mountPath"],
    ),
    "compile cache": (
        put_in_profile(
            lambda _, text: {"compile_cache": CompileCache.model_construct(claim=text, mount_path="/kernels")}
        ),
        [f"{POD}.volumes.3.persistentVolumeClaim.claimName"],
    ),
    "folder of the compile cache": (
        put_in_profile(lambda _, text: {"compile_cache": CompileCache.model_construct(claim="c", mount_path=text)}),
        [f"{CONTAINER}.volumeMounts.3.mountPath", "$" + env(11)],
    ),
    "tmp size": (put_in_profile(lambda profile, text: {"tmp_size": text}), [f"{POD}.volumes.0.emptyDir.sizeLimit"]),
    "shm size": (put_in_profile(lambda profile, text: {"shm_size": text}), [f"{POD}.volumes.1.emptyDir.sizeLimit"]),
    "memory": (
        put_in_pool(lambda pool, text: {"memory": text}),
        [f"{CONTAINER}.resources.requests.memory", f"{CONTAINER}.resources.limits.memory"],
    ),
    "node label": (put_in_pool(lambda pool, text: {"node_selector": {"zone": text}}), [f"{POD}.nodeSelector.zone"]),
    "rule's key": (
        put_in_pool(
            lambda pool, text: {"node_affinity": ((pool.node_affinity[0][0].model_copy(update={"key": text}),),)}
        ),
        [f"{TERM}.matchExpressions.0.key"],
    ),
    "rule's value": (
        put_in_pool(
            lambda pool, text: {"node_affinity": ((pool.node_affinity[0][0].model_copy(update={"values": (text,)}),),)}
        ),
        [f"{TERM}.matchExpressions.0.values.0"],
    ),
    "toleration's key": (
        put_in_pool(lambda pool, text: {"tolerations": (pool.tolerations[0].model_copy(update={"key": text}),)}),
        [f"{POD}.tolerations.0.key"],
    ),
    "toleration's value": (
        put_in_pool(lambda pool, text: {"tolerations": (pool.tolerations[0].model_copy(update={"value": text}),)}),
        [f"{POD}.tolerations.0.value"],
    ),
    "label": (
        put_in_profile(lambda profile, text: {"labels": {"team": text}}),
        ["metadata.labels.team", "spec.template.metadata.labels.team"],
    ),
    "annotation": (
        put_in_profile(lambda profile, text: {"annotations": {"note": text}}),
        ["spec.template.metadata.annotations.note"],
    ),
    "runtime class": (put_in_pool(lambda pool, text: {"runtime_class_name": text}), [f"{POD}.runtimeClassName"]),
    "owner's name": (
        lambda values, text: values | {"owner": JobOwner(name=text, uid=OWNER.uid)},
        ["metadata.ownerReferences.0.name"],
    ),
    "device claim": (put("claim_template"), [f"{POD}.resourceClaims.0.resourceClaimTemplateName"]),
}
SLOT_PLACES: dict[str, list[str]] = {
    "job_name": ["metadata.name"],
    "run_id": ["metadata.labels.benchmatrix/run-id", "spec.template.metadata.labels.benchmatrix/run-id", env(1)],
    "cell_id": ["metadata.labels.benchmatrix/cell-id", "spec.template.metadata.labels.benchmatrix/cell-id"],
    "repeat": ["metadata.labels.benchmatrix/repeat", "spec.template.metadata.labels.benchmatrix/repeat", env(2)],
    "fingerprint": [
        "metadata.labels.benchmatrix/fingerprint",
        "spec.template.metadata.labels.benchmatrix/fingerprint",
    ],
    "cell_json": [env(0)],
}


def expect(harmless: dict[str, object], paths: list[str], text: str) -> dict[str, object]:
    """Return the leaves of a Job that differs from a harmless one in the text at these paths."""
    assert {path.removeprefix("$") for path in paths} <= set(harmless)
    return harmless | {
        path.removeprefix("$"): escape_variable(text) if path.startswith("$") else text for path in paths
    }


FULL = collect_full_values()
SHAPE = JobShape.render(FULL)


@cache
def fill_harmless(place: str | None = None) -> dict[str, object]:
    return fill(FULL if place is None else PLACES[place][0](FULL, "harmless"))


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=15)
@given(text=texts)
def test_a_hostile_text_stays_in_its_place(place: str, text: str) -> None:
    change, paths = PLACES[place]
    assert fill(change(FULL, text)) == expect(fill_harmless(place), paths, text)


@pytest.mark.parametrize("slot", SLOT_PLACES)
@settings(max_examples=50)
@given(text=texts)
def test_a_hostile_text_stays_in_its_slot(slot: str, text: str) -> None:
    assert dict(walk(json.loads(SHAPE.fill(SLOTS | {slot: text})))) == expect(fill_harmless(), SLOT_PLACES[slot], text)


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_each_hostile_text_stays_in_its_place_in_a_variable(text: str) -> None:
    change, paths = PLACES["variable"]
    assert fill(change(FULL, text)) == expect(fill_harmless("variable"), paths, text)


@pytest.mark.parametrize("place", ["store", "variable", "image"])
def test_a_megabyte_stays_in_its_place(place: str) -> None:
    change, paths = PLACES[place]
    text = "".join(HOSTILE_TEXTS) * (2**20 // len("".join(HOSTILE_TEXTS)) + 1)
    assert len(text) >= 2**20
    assert fill(change(FULL, text)) == expect(fill_harmless(place), paths, text)


@given(st.text() | texts)
def test_a_quoted_text_is_read_back_by_both_of_pyyamls_readers(text: str) -> None:
    quoted = quote_yaml(text)
    assert "\n" not in quoted
    assert [yaml.safe_load(quoted), read_manifest(f"value: {quoted}")["value"]] == [text, text]


def expand(text: str, variables: dict[str, str]) -> str:
    """Do what a kubelet does to a variable: k8s.io/kubernetes/third_party/forked/golang/expansion/expand.go."""
    out, index = "", 0
    while index < len(text):
        if text[index] != "$" or index + 1 == len(text):
            out, index = out + text[index], index + 1
        elif text[index + 1] == "$":
            out, index = out + "$", index + 2
        elif text[index + 1] == "(" and (end := text.find(")", index)) > 0:
            name = text[index + 2 : end]
            out, index = out + variables.get(name, f"$({name})"), end + 1
        else:
            out, index = out + text[index : index + 2], index + 2
    return out


@given(st.text(alphabet="$()HOME a") | texts)
def test_a_variable_arrives_as_it_was_after_kubernetes_expanded_it(text: str) -> None:
    assert expand(escape_variable(text), {"HOME": "/root", "": "nothing", "a": "b"}) == text


@settings(max_examples=30)
@given(data_dir=texts)
def test_a_cell_arrives_in_its_container_as_it_was_planned(data_dir: str) -> None:
    cell = make_cell(data_dir=data_dir)
    manifest = render(make_full_profile(), cell)
    variables = {
        item["name"]: item.get("value") for item in manifest["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    assert Cell.model_validate_json(expand(variables["BENCH_CELL"], {"HOME": "/tmp"})) == cell


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_a_job_filled_from_its_shape_is_the_template_with_the_values_in_it(name: str, device: str) -> None:
    cell = make_cell(device=device)
    renderer, key = make_renderer(load(name)), make_key(cell)
    slots = {
        "job_name": key.job_name,
        "run_id": RUN_ID,
        "cell_id": cell.cell_id,
        "repeat": "1",
        "fingerprint": "",
        "cell_json": cell.model_dump_json(),
    }
    whole = render_manifest("job.yaml.j2", **renderer.collect_values(plan(cell)), slot=slots)
    assert json.loads(renderer.render(plan(cell), key)) == read_manifest(whole)


def test_a_name_that_the_template_needs_and_does_not_get_is_an_error() -> None:
    for name in FULL:
        values = {key: value for key, value in FULL.items() if key != name}
        with pytest.raises((jinja2.UndefinedError, TypeError)):  # the latter from `tojson`
            render_manifest("job.yaml.j2", **values, slot=SLOTS)

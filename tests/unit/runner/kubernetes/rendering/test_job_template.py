"""Planned cells and profiles go in; Jobs in which every value stands in its place, and nowhere else, must come out."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import jinja2
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import UserError
from bench.exit_codes import FINAL_EXIT_CODES
from bench.schema import Cell, PlannedCell
from factories import make_cell
from hostile_texts import HOSTILE_TEXTS, texts
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.rendering.job_template import (
    JobOwner,
    JobRenderer,
    JobShape,
    escape_variable,
    quote_yaml,
    read_manifest,
    render_manifest,
)
from runner.profiles.model import Data, Gpus, NodeRule, Pool, Profile, Toleration, load_profile

OWNER = JobOwner(name="night-1", uid="6f1c1a52-3b9b-4c7e-9a0e-5d1a52f7a6b1")
RUN_ID, STORE = "mine-1", "s3://bucket/prefix"
IMAGE = "registry.example/benchmatrix:1"
IMAGES: Any = {name: {"cpu": IMAGE, "gpu": IMAGE} for name in ("pytorch", "tensorflow", "jax")}
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers.0"
SLOTS = {"job_name": "name", "run_id": RUN_ID, "cell_id": "cell-12345678", "repeat": "1", "cell_json": "{}"}
KINDS = [("gke", "cpu"), ("gke", "gpu"), ("eks", "cpu"), ("eks", "gpu"), ("kind", "cpu")]


def make_full_profile() -> Profile:
    """Return a profile in which every key that reaches a Job has a value."""
    pool = Pool(
        node_selector={"zone": "a"},
        nodes=((NodeRule(key="kind", operator="In", values=("fast",)),),),
        tolerations=(Toleration(key="taken", operator="Equal", value="yes", effect="NoSchedule"),),
        cpus=2,
        memory="4Gi",
    )
    return Profile(
        name="full",
        namespace="space",
        labels={"team": "a"},
        service_account="account",
        pools={"cpu": pool, "gpu": pool},
        gpu=Gpus(name="Tesla T4", compute_capability=(7, 5), max_per_node=4),
        images=IMAGES,
        image_pull_secrets=("pull",),
        store_secret="keys",
        environment={"MINE": "value"},
        data=Data(claim="claim", mount_path="/data"),
        priority_class="class",
    )


def plan(cell: Cell, **overrides: Any) -> PlannedCell:
    return PlannedCell(**({"cell": cell, "repeats": 1, "timeout_seconds": 600.0} | overrides))


def make_renderer(profile: Profile, **overrides: Any) -> JobRenderer:
    return JobRenderer(**({"profile": profile, "store_url": STORE, "git_revision": "abc"} | overrides))


def make_key(cell: Cell) -> JobKey:
    return JobKey(run_id=RUN_ID, cell_id=cell.cell_id, number=1, retry_round=0)


def render(profile: Profile, cell: Cell | None = None, **overrides: Any) -> dict[str, Any]:
    cell = cell or make_cell()
    manifest: dict[str, Any] = json.loads(make_renderer(profile, **overrides).render(plan(cell), make_key(cell)))
    return manifest


def load(name: str, **overrides: Any) -> Profile:
    return load_profile(name).model_copy(update={"images": IMAGES, **overrides})


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
    "service account": (
        put_in_profile(lambda profile, text: {"service_account": text}),
        [f"{POD}.serviceAccountName"],
    ),
    "priority": (put_in_profile(lambda profile, text: {"priority_class": text}), [f"{POD}.priorityClassName"]),
    "pull secret": (
        put_in_profile(lambda profile, text: {"image_pull_secrets": (text,)}),
        [f"{POD}.imagePullSecrets.0.name"],
    ),
    "store secret": (
        put_in_profile(lambda profile, text: {"store_secret": text}),
        [f"{CONTAINER}.envFrom.0.secretRef.name"],
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
    "tmp size": (put_in_profile(lambda profile, text: {"tmp_size": text}), [f"{POD}.volumes.0.emptyDir.sizeLimit"]),
    "shm size": (put_in_profile(lambda profile, text: {"shm_size": text}), [f"{POD}.volumes.1.emptyDir.sizeLimit"]),
    "memory": (
        put_in_pool(lambda pool, text: {"memory": text}),
        [f"{CONTAINER}.resources.requests.memory", f"{CONTAINER}.resources.limits.memory"],
    ),
    "node label": (put_in_pool(lambda pool, text: {"node_selector": {"zone": text}}), [f"{POD}.nodeSelector.zone"]),
    "rule's key": (
        put_in_pool(lambda pool, text: {"nodes": ((pool.nodes[0][0].model_copy(update={"key": text}),),)}),
        [f"{TERM}.matchExpressions.0.key"],
    ),
    "rule's value": (
        put_in_pool(lambda pool, text: {"nodes": ((pool.nodes[0][0].model_copy(update={"values": (text,)}),),)}),
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
    "cell_json": [env(0)],
}


def expect(harmless: dict[str, object], paths: list[str], text: str) -> dict[str, object]:
    """Return the leaves of a Job that differs from a harmless one in the text at these paths."""
    assert {path.removeprefix("$") for path in paths} <= set(harmless)
    return harmless | {
        path.removeprefix("$"): escape_variable(text) if path.startswith("$") else text for path in paths
    }


FULL = make_renderer(make_full_profile(), queue="team", owner=OWNER).collect_values(plan(make_cell()))
SHAPE = JobShape.render(FULL)


@cache
def fill_harmless(place: str | None = None) -> dict[str, object]:
    return fill(FULL if place is None else PLACES[place][0](FULL, "harmless"))


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=15, deadline=None)
@given(text=texts)
def test_a_hostile_text_stays_in_its_place(place: str, text: str) -> None:
    change, paths = PLACES[place]
    assert expect(fill_harmless(place), paths, text) == fill(change(FULL, text))


@pytest.mark.parametrize("slot", SLOT_PLACES)
@settings(max_examples=50, deadline=None)
@given(text=texts)
def test_a_hostile_text_stays_in_its_slot(slot: str, text: str) -> None:
    assert expect(fill_harmless(), SLOT_PLACES[slot], text) == dict(walk(json.loads(SHAPE.fill(SLOTS | {slot: text}))))


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_each_hostile_text_stays_in_its_place_in_a_variable(text: str) -> None:
    change, paths = PLACES["variable"]
    assert expect(fill_harmless("variable"), paths, text) == fill(change(FULL, text))


@pytest.mark.parametrize("place", ["store", "variable", "image"])
def test_a_megabyte_stays_in_its_place(place: str) -> None:
    change, paths = PLACES[place]
    text = "".join(HOSTILE_TEXTS) * (2**20 // len("".join(HOSTILE_TEXTS)) + 1)
    assert len(text) >= 2**20
    assert expect(fill_harmless(place), paths, text) == fill(change(FULL, text))


@given(st.text() | texts)
def test_a_quoted_text_is_read_back_by_both_of_pyyamls_readers(text: str) -> None:
    quoted = quote_yaml(text)
    assert "\n" not in quoted
    assert [text, text] == [yaml.safe_load(quoted), read_manifest(f"value: {quoted}")["value"]]


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
    assert text == expand(escape_variable(text), {"HOME": "/root", "": "nothing", "a": "b"})


@settings(max_examples=30, deadline=None)
@given(data_dir=texts)
def test_a_cell_arrives_in_its_container_as_it_was_planned(data_dir: str) -> None:
    cell = make_cell(data_dir=data_dir)
    manifest = render(make_full_profile(), cell)
    variables = {
        item["name"]: item.get("value") for item in manifest["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    assert cell == Cell.model_validate_json(expand(variables["BENCH_CELL"], {"HOME": "/tmp"}))


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_a_job_filled_from_its_shape_is_the_template_with_the_values_in_it(name: str, device: str) -> None:
    cell = make_cell(device=device)
    renderer, key = make_renderer(load(name)), make_key(cell)
    slots = {
        "job_name": key.job_name,
        "run_id": RUN_ID,
        "cell_id": cell.cell_id,
        "repeat": "1",
        "cell_json": cell.model_dump_json(),
    }
    whole = render_manifest("job.yaml.j2", **renderer.collect_values(plan(cell)), slot=slots)
    assert read_manifest(whole) == json.loads(renderer.render(plan(cell), key))


def test_a_name_that_the_template_needs_and_does_not_get_is_an_error() -> None:
    for name in FULL:
        values = {key: value for key, value in FULL.items() if key != name}
        with pytest.raises((jinja2.UndefinedError, TypeError)):  # the latter from `tojson`
            render_manifest("job.yaml.j2", **values, slot=SLOTS)


# What a Job is


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_a_job_is_one_pod_that_is_not_restarted(name: str, device: str) -> None:
    profile = load(name)
    spec = render(profile, make_cell(device=device))["spec"]
    assert (1, 1, False) == (spec["completions"], spec["parallelism"], spec["suspend"])
    assert ("Failed", 2) == (spec["podReplacementPolicy"], spec["backoffLimit"])
    assert (86_400, 86_400) == (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"])
    pod = spec["template"]["spec"]
    assert ("Never", 600 + 900, 60) == (
        pod["restartPolicy"],
        pod["activeDeadlineSeconds"],
        pod["terminationGracePeriodSeconds"],
    )


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_disruptions_are_not_counted_and_ends_of_the_cell_are_final(name: str, device: str) -> None:
    disrupted, *others = render(load(name), make_cell(device=device))["spec"]["podFailurePolicy"]["rules"]
    assert {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]} == disrupted
    ended = {"containerName": "bench", "operator": "In", "values": sorted(FINAL_EXIT_CODES)}
    assert {"action": "FailJob", "onExitCodes": ended} in others
    assert {1, 2, 126, 127, 134, 137, 139} <= FINAL_EXIT_CODES


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_requests_are_limits_in_whole_cores(name: str, device: str) -> None:
    profile = load(name)
    pod = render(profile, make_cell(device=device))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert "initContainers" not in pod
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert str(profile.pools[device].cpus) == container["resources"]["limits"]["cpu"]  # type: ignore[index]
    assert container["resources"]["limits"]["cpu"].isdecimal()
    assert ("1" if device == "gpu" else None) == container["resources"]["limits"].get("nvidia.com/gpu")


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_a_pod_meets_the_restricted_standard_and_has_no_token(name: str, device: str) -> None:
    pod = render(load(name), make_cell(device=device))["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert "benchmatrix-cell" == pod["serviceAccountName"]
    assert {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}} == pod["securityContext"]
    assert {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    } == pod["containers"][0]["securityContext"]
    assert {"emptyDir"} == {key for volume in pod["volumes"] for key in volume if key != "name"}


@pytest.mark.parametrize(("name", "device"), KINDS)
def test_measured_cells_never_share_a_node(name: str, device: str) -> None:
    affinity = render(load(name), make_cell(device=device))["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = {"app.kubernetes.io/name": "benchmatrix", "app.kubernetes.io/component": "cell"}
    assert {
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {},
        "labelSelector": {"matchLabels": labels},
    } == term


def test_a_cpu_cell_tolerates_no_gpu_node() -> None:
    for name in ("gke", "eks", "kind"):
        assert "tolerations" not in render(load(name))["spec"]["template"]["spec"]


@pytest.mark.parametrize("queue", ["team-a", "team.a", "x" * 63])
def test_a_queue_makes_a_suspended_job_with_its_label(queue: str) -> None:
    manifest = render(load("kind"), queue=queue)
    assert manifest["spec"]["suspend"] is True
    assert queue == manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]


def test_a_claim_takes_the_place_of_the_limit() -> None:
    gpu = load("gke").gpu
    assert gpu is not None
    profile = load("gke", gpu=gpu.model_copy(update={"request": "claim"}))
    pod = render(profile, make_cell(device="gpu", num_gpus=2))["spec"]["template"]["spec"]
    assert [{"name": "gpu", "resourceClaimTemplateName": "benchmatrix-2-gpu"}] == pod["resourceClaims"]
    resources = pod["containers"][0]["resources"]
    assert [{"name": "gpu"}] == resources["claims"]
    assert {"cpu", "memory"} == set(resources["limits"]) == set(resources["requests"])


def test_a_cell_may_be_moved_where_the_profile_allows_it() -> None:
    kept, moved = (render(load("kind", evict_never=flag))["spec"]["template"]["metadata"] for flag in (True, False))
    assert {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"} == kept["annotations"]
    assert "annotations" not in moved


def test_a_job_goes_with_its_owner() -> None:
    owned, free = (
        render(load("kind"), owner=owner)["metadata"] for owner in (JobOwner.parse(f"night-1/{OWNER.uid}"), None)
    )
    assert [{"apiVersion": "batch/v1", "kind": "Job", "name": "night-1", "uid": OWNER.uid}] == owned["ownerReferences"]
    assert "ownerReferences" not in free


# Faults


def read_fault(profile: Profile, cell: Cell | None = None, timeout_seconds: float = 600.0, **overrides: Any) -> str:
    cell = cell or make_cell()
    with pytest.raises(UserError) as caught:
        make_renderer(profile, **overrides).render(plan(cell, timeout_seconds=timeout_seconds), make_key(cell))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_profile_without_the_image_names_the_key() -> None:
    assert read_fault(load_profile("gke")).startswith("profile gke: images.pytorch.cpu: is missing; name the image")


def test_a_profile_without_the_pool_names_it() -> None:
    assert "profile kind: has no pool 'gpu'" in read_fault(load("kind"), make_cell(device="gpu"))


@pytest.mark.parametrize("seconds", [86_400.0, 1e300])
def test_a_cell_that_may_take_longer_than_its_job_is_refused(seconds: float) -> None:
    message = read_fault(load("kind"), timeout_seconds=seconds)
    assert message.startswith("profile kind: job_deadline_seconds: 86400 is less than the timeout_seconds of conv6-")


@pytest.mark.parametrize("queue", ["", "a b", "-a", "a\nb", "x" * 64, "A"])
def test_a_queue_that_no_label_can_name_is_refused(queue: str) -> None:
    assert read_fault(load("kind"), queue=queue).startswith("--queue: found ")


@pytest.mark.parametrize(
    "owner", ["", "night", "night/", "/x", "night/1", "Night/6f1c1a52-3b9b-4c7e-9a0e-5d1a52f7a6b1"]
)
def test_an_owner_that_is_no_job_is_refused(owner: str) -> None:
    with pytest.raises(UserError, match="^--owner"):
        JobOwner.parse(owner)


@pytest.mark.parametrize("store", ["s3://b/\0", "s3://b/\udc80", "s3://b/" + "x" * 40_000])
def test_a_store_that_no_variable_can_hold_is_refused(store: str) -> None:
    assert read_fault(load("kind"), store_url=store).startswith("--store: found 's3://b/")

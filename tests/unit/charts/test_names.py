"""Names and labels of what the chart makes: odd releases, texts that YAML reads otherwise, a label said twice."""

import json
import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from chart import Manifest, find, find_pod, make_values, parse, read_config, render

LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
EVERYTHING: dict[str, Any] = {
    "trialStore__enabled": True,
    "claims__enabled": True,
    "profile__extends": "gke",
    "quota__hard": {"pods": 10},
}


def name_all(manifests: list[Manifest]) -> set[tuple[str, str]]:
    return {(item["kind"], item["metadata"]["name"]) for item in manifests}


@pytest.mark.parametrize("release", ["a.c", "1", "1.2.3", f"{'x' * 32}.{'y' * 20}", "0" * 53, "benchmatrix.v1"])
def test_names_are_labels_of_dns_whatever_the_release_is_called(release: str) -> None:
    manifests = render(make_values(**EVERYTHING), name=release)

    names = {manifest["metadata"]["name"] for manifest in manifests}
    assert [name for name in names if not LABEL.fullmatch(name) or len(name) > 63] == []
    # https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
    assert len(find(manifests, "CronJob")["metadata"]["name"]) <= 52


@pytest.mark.parametrize(("one", "other"), [("a.c", "a-c"), ("a.b-c", "a-b.c"), ("1", "r1"), ("x" * 52, "x" * 53)])
def test_releases_with_like_names_share_no_object(one: str, other: str) -> None:
    first, second = (name_all(render(make_values(**EVERYTHING), name=name)) for name in (one, other))
    assert first & second == set()


def test_a_plain_name_of_a_release_is_kept() -> None:
    assert find(render(make_values(), name="sweeps"), "CronJob")["metadata"]["name"] == "sweeps-benchmatrix"
    assert find(render(make_values(), name="my-benchmatrix"), "CronJob")["metadata"]["name"] == "my-benchmatrix"


@pytest.mark.parametrize("word", ["123", "1e3", "0x10", "null", "on"])
def test_names_that_yaml_reads_as_something_else_stay_texts(word: str) -> None:
    there = {"create": False, "name": word}
    values = make_values(
        claims__enabled=True,
        claims__deviceClass=word,
        profile__extends="gke",
        quota__hard={"pods": 10},
        runner__serviceAccount=there,
        cells__serviceAccount=there,
        runner__priorityClassName=word,
        runner__environment={"NO": "yes", "Y": "1", "_1": "null"},
        runner__podLabels={"on": word, "off": ""},
        runner__nodeSelector={"1": word},
        imagePullSecrets=[word],
        store__secret=word,
        labels={"no": word},
    )
    for manifest in render(values | {"trialStore": {"enabled": False}}, name=word, namespace=word):
        kubernetes_validate.validate(manifest, "1.36", strict=True)
        assert manifest["metadata"].get("namespace") == word
        assert manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == word
    for manifest in render(make_values(trialStore__enabled=True, cells__namespace=word), name=word, namespace="456"):
        kubernetes_validate.validate(manifest, "1.36", strict=True)


def test_variables_keep_their_names() -> None:
    environment = {"NO": "yes", "Y": "1", "AWS_ENDPOINT_URL": "https://mine.example"}
    pod = find_pod(render(make_values(runner__environment=environment, store__endpointUrl="https://s3.example")))
    variables = {item["name"]: item.get("value") for item in pod["spec"]["containers"][0]["env"]}
    assert environment.items() <= variables.items()


def test_a_label_that_is_said_twice_has_the_value_of_the_nearer_one() -> None:
    values = make_values(labels={"team": "a", "empty": "x"}, runner__podLabels={"team": "b", "empty": ""})
    manifests = render(values)
    for labels in (find_pod(manifests)["metadata"]["labels"], find(manifests, "Pod", "-doctor")["metadata"]["labels"]):
        assert {"team": "b", "empty": ""}.items() <= labels.items()
    assert find(manifests, "CronJob")["metadata"]["labels"]["team"] == "a"


def test_labels_of_cells_are_those_of_the_profile_and_what_else_the_chart_is_given() -> None:
    values = make_values(labels={"team": "a", "unit": "x"}, profile__labels={"team": "b"})
    expected = {"team": "b", "unit": "x", "benchmatrix/release": "sweeps"}
    assert read_config(render(values), "profile")["labels"] == expected


def test_no_yaml_with_a_key_twice_is_read() -> None:
    with pytest.raises(yaml.constructor.ConstructorError, match="twice: {'a'}"):
        list(parse([json.dumps({"b": 1}), "b: {a: 1, a: 2}"]))

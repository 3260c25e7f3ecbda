"""The chart's values: what is wrong, or a credential, fails with its path; everything is described and in step."""

import copy
import json
import re
import runpy
import shutil
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml

from bench.redaction import is_secret_variable
from chart import CHART, NAMESPACE, make_overlay, make_values, parse, render

MAKE_SCHEMA = runpy.run_path(str(CHART.parent / "make_schema.py"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nigth": {}}, "at '': additional properties 'nigth' not allowed"),
        ({"schedule__cron": "at two"}, "at '/schedule/cron': 'at two' does not match pattern"),
        ({"customMatrix": {"name": "x", "axes": {"model": ["conv7"]}}}, "at '/customMatrix/axes/model/0': value must"),
        ({"profile__extends": "gce"}, "at '/profile/extends': value must be one of 'aks', 'eks', 'eks-auto', 'gke',"),
        (
            {"profile__pools": {"cpu": {"cpus": "four"}}},
            "at '/profile/pools/cpu/cpus': got string, want null or integer",
        ),
        ({"store__url": "bucket/prefix"}, "at '/store/url': 'bucket/prefix' does not match pattern"),
        ({"networkPolicy__store": {"cidrs": ["any"]}}, "at '/networkPolicy/store/cidrs/0': 'any' does not match"),
        (
            {"networkPolicy__apiServer": {"peers": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}},
            "at '/networkPolicy/apiServer/peers/0': maxProperties",
        ),
        ({"labels": {"app.kubernetes.io/name": "x"}}, "at '/labels/app.kubernetes.io~1name': false schema"),
        ({"schedule": None}, "at '': missing property 'schedule'"),
        ({"profile": {"labels": {"a": "b"}}}, "at '/profile': missing property 'extends'"),
        ({"profile__images": {"jax": {"cpu": "jax: 1"}}}, "at '/profile/images/jax/cpu': 'jax: 1' does not match"),
        ({"runner__overlay": {"template": {}}}, "at '/runner/overlay': additional properties"),
        (
            {"runner__overlay": {"spec": {"containers": [{"name": "sidecar"}]}}},
            "at '/runner/overlay/spec/containers/0/name': value must be 'runner'",
        ),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_a_wrong_value_fails_with_its_path(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(helm_python.HelmValuesError, match=re.escape(message)):
        render(make_values(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule__cron": "0  2\t* * *"},
        {"quota__hard": {"requests.nvidia.com/gpu": 0, "requests.cpu": 1.5}},
        {"networkPolicy__store": {"cidrs": ["10.0.0.0/8", "2001:db8::/32", "::ffff:10.0.0.1/128", "0.0.0.0/0"]}},
        {"cells__namespace": "x" * 63},
        {"runner__resources": {"limits": None}},
        {"profile": {"pools": {"cpu": {"cpus": 1, "memory": "1Gi"}}}},
    ],
    ids=json.dumps,
)
def test_what_kubernetes_takes_is_taken(changes: dict[str, Any]) -> None:
    for manifest in render(make_values(**{"trialStore__enabled": True} | changes)):
        kubernetes_validate.validate(manifest, "1.36", strict=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image__repository": ""}, "image.repository: is empty; name where"),
        ({"store__url": ""}, "store.url: is empty; name the bucket and a prefix of this release's own"),
        ({"profile": {}}, "profile: is empty; say what the cluster is like"),
        ({"runner__serviceAccount": {"create": False}}, "runner.serviceAccount.name: is empty"),
        ({"cells__namespace": NAMESPACE}, f"cells.namespace: is `{NAMESPACE}`, the release's own"),
        ({"claims__enabled": True, "profile__extends": "gke", "profile__gpu": None}, "claims.enabled: is true, but"),
        (
            {"runner__overlay": {"spec": {"volumes": [{"name": "config", "emptyDir": {}}]}}},
            "runner.overlay.spec.volumes: `config` is a volume of the chart; take another name",
        ),
        (
            {"runner__overlay": make_overlay(env=[{"name": "JOB_NAME", "value": "x"}])},
            "runner.overlay.spec.containers: the variable JOB_NAME is the chart's; take another name",
        ),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_what_is_needed_or_does_not_go_together_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(helm_python.HelmRenderError, match=re.escape(message)):
        render(make_values(**changes))


def test_every_value_is_described_and_has_a_default() -> None:
    source = yaml.safe_load((CHART / "values.schema.yaml").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(schema: dict[str, Any], values: dict[str, Any], path: str) -> None:
        assert set(values) == set(schema) - {"global"}, path
        for key, part in schema.items():
            resolved = source["$defs"][part["$ref"].rpartition("/")[2]] | part if "$ref" in part else part
            assert resolved.get("description"), f"{path}.{key}"
            if "properties" in resolved and key not in ("resources", "global"):
                compare(resolved["properties"], values[key], f"{path}.{key}")

    compare(source["properties"], defaults, "")


def test_what_is_made_of_the_schema_is_in_step() -> None:
    for path, text in MAKE_SCHEMA["make_files"]().items():
        assert path.read_text(encoding="utf-8") == text, "run `make chart`"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"runner__environment": {"AZURE_STORAGE_ACCOUNT_KEY": "hunter2"}}, "runner.environment.AZURE_STORAGE_ACCOUNT"),
        (
            {"runner__overlay": make_overlay(env=[{"name": "AWS_SECRET_ACCESS_KEY", "value": "hunter2"}])},
            "runner.overlay.spec.containers[0].env",
        ),
        (
            {"profile__overlay": make_overlay(env=[{"name": "AWS_SECRET_ACCESS_KEY", "value": "hunter2"}])},
            "profile.overlay.spec.containers[0]",
        ),
        ({"store__endpointUrl": "https://me:hunter2@minio.example"}, "store.endpointUrl: has a user or a password"),
        ({"store__url": "s3://me:hunter2@bucket/prefix"}, "store.url: has a user or a password"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_a_credential_is_refused_and_not_repeated(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(helm_python.HelmError, match=re.escape(place)) as caught:
        render(make_values(**changes))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "http://proxy.example:3128"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token"),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", "x"),
        ("PLAIN", "AccountName=a;AccountKey=x=="),
        ("PLAIN", "https://a.example/c?sv=1&sig=x"),
        ("PLAIN", "design=x"),
    ],
)
def test_the_chart_knows_the_credentials_that_a_profile_refuses(name: str, value: str) -> None:
    values = make_values(runner__environment={name: value})
    if is_secret_variable(name, value):
        with pytest.raises(helm_python.HelmRenderError, match="is a credential"):
            render(values)
    else:
        assert render(values)


API_VERSION = re.compile(r"\(?\.Capabilities\.APIVersions\.Has \"[^\"]+\"\)?")
PEERS = {"peers": [{"podSelector": {"matchLabels": {"app": "alarms"}}}]}
PLAIN = make_values(
    store__secret="keys",
    cells={"namespace": "cells", "serviceAccount": {"name": "measures"}},
    runner__serviceAccount__name="runs",
    metrics={"enabled": True, "podMonitor": {"enabled": True}},
    kueue={"clusterQueue": "all", "flavors": [{"name": "cpu", "quotas": {"cpu": 8}}]},
    watch__webhooks=[{"kind": "slack", "secret": "alarms", "key": "url"}],
)


def list_leaves(part: Any, key: str = "") -> Iterator[str]:
    """Yield `key: value` of each value in manifests, however deep, and `kind/name` of each manifest."""
    if isinstance(part, dict) and "kind" in part and "metadata" in part:
        yield f"{part['kind']}/{part['metadata']['name']}"
    if isinstance(part, dict | list):
        for name, child in part.items() if isinstance(part, dict) else ((key, child) for child in part):
            yield from list_leaves(child, name)
    else:
        yield f"{key}: {part}"


@pytest.fixture(scope="module")
def list_rendered(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], set[str]]:
    """Renders a copy of the chart that takes every API for served: there is no cluster to ask."""
    chart = shutil.copytree(CHART, tmp_path_factory.mktemp("chart") / "benchmatrix")
    for path in (chart / "templates").rglob("*.*"):
        path.write_text(API_VERSION.sub("true", path.read_text()))

    def call(values: dict[str, Any]) -> set[str]:
        with helm_python.Chart.load(chart) as loaded:
            texts = loaded.render(values, name="sweeps", namespace=NAMESPACE)
        return set(list_leaves(list(parse(text for path, text in texts.items() if path.endswith(".yaml")))))

    return call


@pytest.mark.parametrize(
    ("path", "value", "new"),
    [
        ("image.pullPolicy", "Always", "imagePullPolicy: Always"),
        ("store.region", "eu-1", "value: eu-1"),
        ("trialStore", {"enabled": True, "image": "mine/rclone:1"}, "image: mine/rclone:1"),
        ("schedule.cron", "5 4 * * 1", "schedule: 5 4 * * 1"),
        ("schedule.timeZone", "Asia/Tokyo", "timeZone: Asia/Tokyo"),
        ("schedule.startingDeadlineSeconds", 61, "startingDeadlineSeconds: 61"),
        ("schedule.successfulJobsHistoryLimit", 3, "successfulJobsHistoryLimit: 3"),
        ("schedule.failedJobsHistoryLimit", 3, "failedJobsHistoryLimit: 3"),
        ("runner.maxInFlight", 61, "args: --max-in-flight=61"),
        ("runner.maxCost", 12.5, "args: --max-cost=12.5"),
        ("runner.giveUpAfterSeconds", 61, "args: --give-up-after=61"),
        ("runner.backoffLimit", 3, "backoffLimit: 3"),
        ("runner.resources.requests", {"cpu": "3"}, "cpu: 3"),
        ("runner.resources.requests", {"memory": "3Gi"}, "memory: 3Gi"),
        ("runner.resources.limits", {"memory": "3Gi"}, "memory: 3Gi"),
        ("runner.podAnnotations", {"note": "mine"}, "note: mine"),
        ("runner.serviceAccount.create", False, "-ServiceAccount/runs"),
        ("watch.enabled", False, "-args: --watch"),
        ("cells.createNamespace", False, "-Namespace/cells"),
        ("cells.serviceAccount.create", False, "-ServiceAccount/measures"),
        ("cells.serviceAccount.annotations", {"note": "mine"}, "note: mine"),
        ("networkPolicy.enabled", False, "-kind: NetworkPolicy"),
        ("networkPolicy.apiServer.ports", [61], "port: 61"),
        ("networkPolicy.webhooks", {"cidrs": ["10.9.0.0/16"]}, "cidr: 10.9.0.0/16"),
        ("networkPolicy.webhooks", PEERS, "app: alarms"),
        ("networkPolicy.webhooks", PEERS | {"ports": [61]}, "port: 61"),
        ("kueue.cohort", "labs", "cohortName: labs"),
        ("metrics.port", 61, "containerPort: 61"),
        ("metrics.podMonitor.enabled", False, "-PodMonitor/sweeps-benchmatrix-runner"),
        ("metrics.podMonitor.labels", {"team": "mine"}, "team: mine"),
        ("metrics.podMonitor.intervalSeconds", 61, "interval: 61s"),
    ],
)
def test_a_value_is_where_it_belongs(
    path: str, value: Any, new: str, list_rendered: Callable[[dict[str, Any]], set[str]]
) -> None:
    """Beside what other tests say of the values; after `-`: what the default has and this value has not."""
    values = copy.deepcopy(PLAIN)
    *keys, last = path.split(".")
    reduce(lambda part, key: part.setdefault(key, {}), keys, values)[last] = value
    plain, changed = list_rendered(PLAIN), list_rendered(values)
    assert new.removeprefix("-") in (plain - changed if new[0] == "-" else changed - plain)

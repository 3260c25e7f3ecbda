"""The chart's values: what is wrong, or a credential, fails with its path; everything is described and in step."""

import json
import re
import runpy
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml

from bench.redaction import is_secret_variable
from chart import CHART, NAMESPACE, make_overlay, make_values, render

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


PLAIN = """{store__secret: keys, cells__namespace: cells, metrics__enabled: true, metrics__podMonitor__enabled: true,
kueue__clusterQueue: all, kueue__flavors: [{name: cpu, quotas: {cpu: 8}}], runner__serviceAccount__name: runs,
cells__serviceAccount__name: measures, watch__webhooks: [{kind: slack, secret: alarms, key: url}]}"""
OFF = """{runner__serviceAccount__create: false, cells__createNamespace: false, cells__serviceAccount__create: false,
metrics__podMonitor__enabled: false, watch__enabled: false, networkPolicy__enabled: false}"""
MEANT_OFF = """kind: ServiceAccount; kind: ServiceAccount; kind: Namespace; kind: PodMonitor; --watch;
kind: NetworkPolicy; kind: NetworkPolicy"""
GIVEN = """{image__pullPolicy: Always, store__region: eu-1, schedule__cron: 5 4 * * 1, schedule__timeZone: Asia/Tokyo,
schedule__startingDeadlineSeconds: 61, schedule__successfulJobsHistoryLimit: 62, schedule__failedJobsHistoryLimit: 63,
runner__maxInFlight: 64, runner__maxCost: 12.5, runner__giveUpAfterSeconds: 65, runner__backoffLimit: 66,
runner__podAnnotations: {note: mine}, runner__resources: {requests: {cpu: 67m, memory: 68Mi}, limits: {memory: 69Mi}},
cells__serviceAccount__annotations: {note: cells}, networkPolicy__apiServer__ports: [70], kueue__cohort: labs,
networkPolicy__webhooks: {cidrs: [10.9.0.0/16], peers: [{podSelector: {matchLabels: {a: b}}}], ports: [71]},
metrics__port: 72, metrics__podMonitor__labels: {team: mine}, metrics__podMonitor__intervalSeconds: 73,
runner__affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}, imagePullSecrets: [pull],
runner__topologySpreadConstraints: [{maxSkew: 74, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}],
runner__nodeSelector: {pool: control}, runner__tolerations: [{key: control}], runner__priorityClassName: high}"""
MEANT = """imagePullPolicy: Always; value: eu-1; schedule: 5 4 * * 1; timeZone: Asia/Tokyo;
startingDeadlineSeconds: 61; successfulJobsHistoryLimit: 62; failedJobsHistoryLimit: 63; --max-in-flight=64;
--max-cost=12.5; --give-up-after=65; backoffLimit: 66; note: mine; cpu: 67m; memory: 68Mi; memory: 69Mi; note: cells;
{protocol: TCP, port: 70}; cohortName: labs; ipBlock: {cidr: 10.9.0.0/16}; a: b; {protocol: TCP, port: 71};
containerPort: 72; --metrics-port=72; team: mine; interval: 73s; nodeAffinity:; nodeAffinity:; name: pull; name: pull;
maxSkew: 74; maxSkew: 74; pool: control; pool: control; key: control; key: control; priorityClassName: high;
priorityClassName: high"""
STORE, MEANT_STORE = "{trialStore__enabled: true, trialStore__image: 'mine/rclone:1'}", "image: mine/rclone:1"


@pytest.mark.parametrize(
    ("before", "after", "meant"), [("{}", GIVEN, MEANT), (OFF, "{}", MEANT_OFF), ("{}", STORE, MEANT_STORE)]
)
def test_every_value_is_where_it_belongs(before: str, after: str, meant: str, tmp_path: Path) -> None:
    """Beside what other tests say of values. A copy of the chart takes every API for served: it can ask no cluster."""
    chart = shutil.copytree(CHART, tmp_path / "benchmatrix")
    for path in (chart / "templates").rglob("*.*"):
        path.write_text(re.sub(r'\(?\.Capabilities\.APIVersions\.Has "[^"]+"\)?', "true", path.read_text()))
    found = []
    for changes in map(yaml.safe_load, (before, after)):
        with helm_python.Chart.load(chart) as loaded:
            texts = loaded.render(make_values(**yaml.safe_load(PLAIN) | changes))
        lines = "\n".join(texts.values()).replace('"', "").splitlines()
        found.append(Counter(re.sub(r"^\s*(- )*", "", line) for line in lines))
    assert Counter(re.split(r";\s", meant)) - (found[1] - found[0]) == Counter()

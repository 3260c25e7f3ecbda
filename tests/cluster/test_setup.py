"""runner.kubernetes.setup on a real API server: what `benchmatrix setup` applies is enough for a run, and not more."""

import json
import os
import re
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from commands import create, patch
from runs import DEADLINE_SECONDS, Setup, Site, make_cells, wait_for

from bench.errors import UserError
from bench.store import Store, StoreError
from child_process import start_child
from control_plane import USER, ControlPlane
from runner.kubernetes.cleanup import JobCleaner
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.rendering import MANIFESTS
from runner.kubernetes.setup import STORE_BUCKET, STORE_NODE_PORT, SetupTemplate
from runner.profiles.loading import load_profile
from runner.sources import ROOT
from s3_server import find_free_port
from workspace import CallMain


@pytest.fixture
def new_namespace(connection: Connection) -> Iterator[str]:
    """The name of a namespace that is not there yet; gone afterwards."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    yield name
    if connection.list_items("/api/v1/namespaces", fieldSelector=f"metadata.name={name}"):
        connection.request("delete", f"/api/v1/namespaces/{name}")


def test_a_user_named_at_setup_can_run_cancel_and_clean_and_see_no_secret(
    site: Site, control_plane: ControlPlane, new_namespace: str, call_main: CallMain
) -> None:
    code, out, _ = call_main(
        "setup", "--on", "current", "--profile", "kind", "--namespace", new_namespace, "--user", USER, "--no-s3"
    )
    assert code == 0
    assert "RoleBinding benchmatrix-runner applied" in out
    site.start_kubelet(num_nodes=2)
    user = Connection(context=f"{control_plane.context}-user", patience_seconds=DEADLINE_SECONDS)

    observed = Setup.make(site.connection, new_namespace, site.store, make_cells(2)).measure(user)

    assert [result.status for result in observed.results] == ["ok", "ok"]
    keeper = JobCleaner(connection=user, namespace=new_namespace, run_id=new_namespace, store=site.store)
    assert keeper.cancel()[0].num_left == 2
    assert keeper.clean(force=True) == 2
    with pytest.raises(ApiError, match="secrets is forbidden"):
        user.list_items(f"/api/v1/namespaces/{new_namespace}/secrets")


def test_the_namespace_takes_cells_and_no_privileged_pod(
    connection: Connection, new_namespace: str, call_main: CallMain
) -> None:
    call_main("setup", "--on", "current", "--profile", "gke", "--namespace", new_namespace)
    path = f"/api/v1/namespaces/{new_namespace}"
    account = connection.get_object(f"{path}/serviceaccounts/benchmatrix-cell")
    assert account["automountServiceAccountToken"] is False
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

    with pytest.raises(ApiError, match='violates PodSecurity "restricted:latest"'):
        create(connection, f"{path}/pods", pod)


def test_a_namespace_of_others_keeps_its_labels(connection: Connection, namespace: str, call_main: CallMain) -> None:
    code, out, _ = call_main("setup", "--on", "current", "--profile", "gke", "--namespace", namespace)

    assert code == 0
    assert f"Namespace {namespace} was created by somebody else and is left as it is" in out
    labels = connection.get_object(f"/api/v1/namespaces/{namespace}")["metadata"]["labels"]
    assert not any(key.startswith("pod-security") for key in labels)


def test_a_role_of_others_keeps_its_rules(connection: Connection, namespace: str, call_main: CallMain) -> None:
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    create(connection, path, {"metadata": {"name": "benchmatrix-runner"}, "rules": rules})

    code, _, err = call_main("setup", "--on", "current", "--profile", "gke", "--namespace", namespace)

    assert (code, "Role benchmatrix-runner: Apply failed with 1 conflict" in err) == (2, True)
    assert connection.get_object(f"{path}/benchmatrix-runner")["rules"] == rules


def test_the_store_for_trying_is_admitted_and_its_keys_are_made_once(
    connection: Connection, new_namespace: str, call_main: CallMain
) -> None:
    words = ("setup", "--on", "current", "--profile", "kind", "--namespace", new_namespace)
    code, out, _ = call_main(*words)
    assert code == 0
    path = f"/api/v1/namespaces/{new_namespace}"
    secret = connection.get_object(f"{path}/secrets/benchmatrix-store")
    assert secret["data"]["AWS_SECRET_ACCESS_KEY"] not in out

    labels = "app.kubernetes.io/name=benchmatrix-store"
    pods = wait_for(lambda: connection.list_items(f"{path}/pods", labelSelector=labels), "the pod of the S3 server")
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}  # as its kubelet would say
    patch(connection, f"{path}/pods/{pods[0]['metadata']['name']}/status", status)
    code, out, err = call_main(*words, "--exports")

    assert code == 0
    assert "Secret benchmatrix-store exists already and is kept" in err
    assert connection.get_object(f"{path}/secrets/benchmatrix-store")["data"] == secret["data"]
    shell = subprocess.run(
        ["bash", "-c", f"{out}\nenv"], capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}
    )
    assert "AWS_ENDPOINT_URL=http://127.0.0.1:30900" in shell.stdout.splitlines()
    assert re.search(r"^AWS_ACCESS_KEY_ID=[0-9A-F]{20}$", shell.stdout, re.MULTILINE)

    patch(connection, f"{path}/secrets/benchmatrix-store", {"data": {"AWS_ACCESS_KEY_ID": None}})
    code, out, err = call_main(*words, "--exports")
    assert (code, out) == (2, "")
    assert "Secret benchmatrix-store in namespace" in err
    assert "lacks AWS_ACCESS_KEY_ID: somebody else made it" in err


def test_rclone_serves_the_bucket_as_the_manifest_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = SetupTemplate(profile=load_profile("kind"), has_store=True)
    container = template.render()["s3"][0]["spec"]["template"]["spec"]["containers"][0]
    secret = template.render_store_secret("AKIAOTHER", "another-key")["stringData"]
    variables: dict[str, str] = {}
    for entry in container["env"]:  # as a kubelet makes them
        value = entry.get("value", secret.get(entry["name"], ""))
        variables[entry["name"]] = re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], value)
    mount = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "bucket")
    (tmp_path / Path(mount).name).mkdir()
    port = find_free_port()
    words = {"/data": str(tmp_path), ":9000": f"127.0.0.1:{port}"}
    rclone = Path(sys.executable).parent / "rclone"
    process = start_child([rclone, *(words.get(word, word) for word in container["args"])], env=variables)
    try:
        for name, value in (secret | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}).items():
            monkeypatch.setenv(name, value)
        wait_for(lambda: _is_listening(port), "rclone")
        Store.open(f"s3://{STORE_BUCKET}/runs").check_writable()
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(StoreError, match="does not accept the credentials"):
            Store.open(f"s3://{STORE_BUCKET}/runs").check_writable()
    finally:
        process.kill()
        process.wait()


def test_setup_by_a_user_without_rights_is_one_message(
    control_plane: ControlPlane, connection: Connection, new_namespace: str, call_main: CallMain
) -> None:
    code, out, err = call_main(
        "setup", "--on", f"{control_plane.context}-user", "--profile", "gke", "--namespace", new_namespace
    )

    assert (code, out) == (2, "")
    assert f"error: --on {control_plane.context}-user: Namespace {new_namespace}: namespaces" in err
    assert "have an administrator of the cluster run `benchmatrix setup`" in err


def test_dry_run_prints_what_the_api_server_would_take_and_applies_nothing(
    connection: Connection, new_namespace: str, call_main: CallMain
) -> None:
    words = ("setup", "--on", "current", "--profile", "kind", "--namespace", new_namespace, "--dry-run")
    code, out, _ = call_main(*words)

    assert code == 0
    kinds = ["Namespace", "ServiceAccount", "ServiceAccount", "Role", "RoleBinding", "Deployment", "Service"]
    assert [manifest["kind"] for manifest in json.loads(out)["items"]] == kinds
    with pytest.raises(ApiError, match="not found"):
        connection.get_object(f"/api/v1/namespaces/{new_namespace}")


def test_an_s3_server_needs_the_name_of_its_secret() -> None:
    with pytest.raises(UserError, match="store_secret: is null"):
        SetupTemplate(profile=load_profile("gke"), has_store=True)


def test_the_port_of_the_kind_cluster_leads_to_the_s3_server() -> None:
    kind = yaml.safe_load((MANIFESTS / "kind.yaml").read_text())
    service = SetupTemplate(profile=load_profile("kind"), has_store=True).render()["s3"][1]

    (mapping,) = kind["nodes"][0]["extraPortMappings"]
    assert service["spec"]["ports"][0]["nodePort"] == mapping["containerPort"] == mapping["hostPort"] == STORE_NODE_PORT
    assert mapping["listenAddress"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("variables", "command"),
    [
        ((), "benchmatrix run smoke "),
        (("CLUSTER=gke", "STORE=s3://b/c"), "benchmatrix run smoke --on current --profile gke --store s3://b/c "),
        (
            ("CLUSTER=my.yaml", "STORE=s3://b", "CONTEXT=x"),
            "benchmatrix run smoke --on x --profile my.yaml --store s3://b ",
        ),
        (("CLUSTER=kind", "STORE=s3://b"), "benchmatrix run smoke --on current --profile kind --store s3://b "),
        (("CLUSTER=kind",), "benchmatrix run smoke --on current --profile kind --store s3://benchmatrix/runs "),
    ],
)
def test_make_matrix_runs_on_the_cluster_that_it_is_given(variables: tuple[str, ...], command: str) -> None:
    done = call_make("--dry-run", *variables)

    assert done.stdout.strip("\n").endswith(f"/{command}")
    assert ("benchmatrix setup --on current --profile kind" in done.stdout) == ("CLUSTER=kind" in variables)
    assert (("CLUSTER=kind",) == variables) == ("--exports" in done.stdout)


def call_make(*words: str) -> "subprocess.CompletedProcess[str]":
    """Call `make matrix` as if the tool was installed, without what the environment says of clusters."""
    environment = {"PATH": os.environ["PATH"]}
    command = ["make", "--silent", "--old-file=.venv/tool", "matrix", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def _is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0

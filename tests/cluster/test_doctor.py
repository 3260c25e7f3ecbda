"""`benchmatrix doctor` on a real API server: what it finds of user, namespace, queue and store."""

from pathlib import Path

import pytest
from commands import create
from doctor_calls import PROFILE, Examine, list_states
from runs import set_quota, wait_for

from control_plane import ControlPlane
from runner.kubernetes.connection import Connection
from s3_server import S3Server
from workspace import CallMain


def test_the_lines_name_check_state_and_remedy(call_main: CallMain, connection: Connection) -> None:
    code, out, _ = call_main("doctor", "--on", "current", "--profile", "kind", "--namespace", "not-there")

    assert code == 1
    lines = out.splitlines()
    at = lines.index("failed  namespace: there is no namespace not-there")
    assert "        > `benchmatrix setup` creates it; or name one: --namespace" == lines[at + 1]
    assert "failed  service account: there is no benchmatrix-cell" in lines
    assert "failed  store secret: there is no benchmatrix-store" in lines
    assert any(line.startswith("ok      API server: v1.") for line in lines)
    assert lines[-1].startswith(f"{sum(line[:2] in ('ok', 'wa', 'fa') for line in lines)} checks: ")


def test_a_user_with_no_rights_is_told_which_and_what_could_not_be_looked_at(
    examine: Examine, control_plane: ControlPlane
) -> None:
    code, findings = examine(on=f"{control_plane.context}-user")

    assert code == 1
    needed = findings["permissions of a run"]
    assert needed["message"].startswith("you may not create, list, watch, delete, deletecollection jobs.batch (to ")
    assert "; list, watch pods (to " in needed["message"]
    assert "benchmatrix setup --user" in needed["hint"]
    housekeeping = findings["permissions to cancel and clean"]
    assert (housekeeping["state"], housekeeping["message"][:24]) == ("warning", "you may not delete pods ")
    machines = findings["permissions to say which machines"]
    assert ("warning", "you may not get, list nodes") == (machines["state"], machines["message"][:27])
    assert "kubectl create clusterrole benchmatrix-nodes --verb get,list --resource nodes" in machines["hint"]
    states = list_states(findings)
    assert states["permissions of a run"] == "failed"
    assert "warning" == states["nodes"] == states["namespace"] == states["service account"]
    assert findings["nodes"]["message"].startswith("not checked: you lack the permission: nodes is forbidden")
    assert "runner-of-the-tests" in findings["API server"]["message"]


def test_a_runtime_class_and_a_field_that_are_not_there_are_found_before_the_run(examine: Examine) -> None:
    _, findings = examine(profile=PROFILE + "pools: {gpu: {runtime_class_name: nvidia-of-nobody}}\n")
    assert 'RuntimeClass "nvidia-of-nobody" not found' in findings["pod: pytorch on 1 GPU"]["message"]
    _, findings = examine(profile=PROFILE + "overlay: {spec: {hostPd: true}}\n")
    assert 'unknown field "spec.template.spec.hostPd"' in findings["Job: pytorch on the CPU"]["message"]


def test_a_quota_without_gpus_and_a_limit_on_pods_are_found_before_the_run(
    examine: Examine, connection: Connection, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    set_quota(connection, namespace, **{"requests.nvidia.com/gpu": "0"})

    _, findings = examine()

    assert findings["pod: pytorch on the CPU"]["state"] == "ok"
    assert findings["Job: pytorch on 1 GPU"]["state"] == "ok"  # a quota of pods says nothing of it
    assert findings["pod: pytorch on 1 GPU"]["state"] == "failed"
    assert "exceeded quota: small, requested: requests.nvidia.com/gpu=1" in findings["pod: pytorch on 1 GPU"]["message"]

    limits = [{"type": "Container", "max": {"cpu": "500m"}}]
    create(connection, f"{path}/limitranges", {"metadata": {"name": "small"}, "spec": {"limits": limits}})

    def examine_again() -> str:
        found = examine()[1]["pod: pytorch on the CPU"]
        return str(found["message"]) if found["state"] == "failed" else ""

    assert "maximum cpu usage per Container is 500m" in wait_for(examine_again, "the limit to be known")


def test_secrets_that_cells_name_are_looked_for(examine: Examine, connection: Connection, namespace: str) -> None:
    profile = PROFILE + "image_pull_secrets: [pull]\nstore_secret: keys\n"
    create(connection, f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "keys"}})

    _, findings = examine(profile=profile)

    assert (findings["store secret"]["state"], findings["image pull secret"]["state"]) == ("ok", "failed")
    assert findings["image pull secret"]["message"] == "there is no pull"


def test_an_image_that_the_profile_lacks_is_found(examine: Examine) -> None:
    code, findings = examine(profile="extends: gke\nimages: {pytorch: {cpu: r.example/p:1, gpu: r.example/p:1}}\n")

    assert code == 1
    assert "images.tensorflow.gpu" in findings["profile"]["message"]
    assert findings["Job: tensorflow on 1 GPU"]["state"] == "ok"  # all else is looked at
    assert "nodes for cells on 1 GPU" in findings


def test_a_queue_needs_kueue(examine: Examine) -> None:
    _, findings = examine("--queue", "team")

    assert findings["queue"]["message"] == "the cluster has no Kueue: it does not know kueue.x-k8s.io"
    assert "leave --queue out" in findings["queue"]["hint"]


def test_the_store_is_tried(examine: Examine, s3_server: S3Server) -> None:
    _, findings = examine("--store", "s3://no-such-bucket/x")
    assert findings["store"]["state"] == "failed"
    assert findings["store"]["message"].startswith("store s3://no-such-bucket/x: ")


def test_an_api_server_that_is_away_ends_the_checks_but_for_the_store(
    examine: Examine, tmp_path: Path, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = control_plane.kubeconfig.read_text().replace(f":{control_plane.port}", ":1")
    (tmp_path / "dead").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "dead"))

    code, findings = examine()

    assert code == 1
    assert list(findings) == ["cells", "API server", "store"]
    assert findings["API server"]["message"].startswith("the API server does not answer: ")

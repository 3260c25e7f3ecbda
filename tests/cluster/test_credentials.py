"""Tokens of a real API server that end during a run, and an API server that is away when a run begins."""

import io
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from commands import create
from rich.console import Console
from runs import DEADLINE_SECONDS, Setup, check_all_once, make_cells, wait_for

from bench.errors import TransientError, UserError
from bench.store import Store
from control_plane import ControlPlane
from fake_kubelet import FakeKubelet
from runner.kubernetes import connection as connection_module
from runner.kubernetes.connection import Connection
from runner.kubernetes.permissions import RUN_PERMISSIONS
from s3_server import find_free_port

StartKubelet = Callable[..., FakeKubelet]
ACCOUNT = "short-lived"


def grant_run(connection: Connection, namespace: str) -> None:
    """Make a service account that may do what a run needs."""
    group = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": [permission.group], "resources": [permission.resource], "verbs": list(permission.verbs)}
        for permission in RUN_PERMISSIONS
    ]
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    create(connection, f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
    path = f"/apis/{group}/v1/namespaces/{namespace}"
    create(connection, f"{path}/roles", {"metadata": {"name": ACCOUNT}, "rules": rules})
    role = {"apiGroup": group, "kind": "Role", "name": ACCOUNT}
    create(connection, f"{path}/rolebindings", {"metadata": {"name": ACCOUNT}, "roleRef": role, "subjects": [subject]})


def request_token(connection: Connection, namespace: str, name: str) -> str:
    """Return a token of the API server's own that ends when `end_token` is called with the same name."""
    create(connection, f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}})
    bound = {"kind": "Secret", "apiVersion": "v1", "name": name}
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600, "boundObjectRef": bound},
    }
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{ACCOUNT}/token"
    return str(create(connection, path, body)["status"]["token"])


def end_token(plane: ControlPlane, connection: Connection, namespace: str, name: str, token: str) -> None:
    """Let a token no longer count, as if its time were over; return when the API server refuses it."""
    connection.request("delete", f"/api/v1/namespaces/{namespace}/secrets/{name}")
    context = ssl.create_default_context(cafile=str(plane.folder / "api.crt"))
    request = urllib.request.Request(
        f"https://127.0.0.1:{plane.port}/api", headers={"Authorization": f"Bearer {token}"}
    )

    def is_refused() -> bool:
        try:
            with urllib.request.urlopen(request, context=context, timeout=DEADLINE_SECONDS):
                return False
        except urllib.error.HTTPError as error:
            return error.code == HTTPStatus.UNAUTHORIZED

    wait_for(is_refused, "a token that is refused")  # it is known to be good for some seconds more


@pytest.fixture
def log_in(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, Any]], Connection]:
    """Connect with other credentials in the kubeconfig."""

    def connect(user: dict[str, Any]) -> Connection:
        control_plane.write_kubeconfig(tmp_path / "kubeconfig", user=user)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        return Connection(context=control_plane.context, patience_seconds=DEADLINE_SECONDS)

    return connect


@pytest.mark.parametrize("source", ["token file", "exec plugin"])
def test_a_run_goes_on_with_the_token_that_takes_the_place_of_one_that_ended(
    control_plane: ControlPlane,
    connection: Connection,
    namespace: str,
    store: Store,
    start_kubelet: StartKubelet,
    log_in: Callable[[dict[str, Any]], Connection],
    tmp_path: Path,
    source: str,
) -> None:
    kubelet = start_kubelet(num_nodes=2)
    kubelet.may_end.clear()
    grant_run(connection, namespace)
    token = tmp_path / "token"
    first = request_token(connection, namespace, "first")
    token.write_text(first)
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "%s"}}
    script = f'printf \'{json.dumps(answer)}\' "$(cat "$0")"'
    plugin = {"apiVersion": answer["apiVersion"], "command": "sh", "args": ["-c", script, str(token)]}
    setup = Setup.make(connection, namespace, store, make_cells(6), max_in_flight=2)
    running = setup.start(log_in({"tokenFile": str(token)} if source == "token file" else {"exec": plugin}))
    wait_for(lambda: len(setup.list_jobs()) == 2, "two Jobs")

    token.write_text(request_token(connection, namespace, "second"))
    end_token(control_plane, connection, namespace, "first", first)
    kubelet.may_end.set()
    running.result(DEADLINE_SECONDS)

    check_all_once(setup, kubelet, 6)


def test_a_run_whose_token_ended_for_good_says_where_to_put_a_new_one(
    control_plane: ControlPlane,
    connection: Connection,
    namespace: str,
    store: Store,
    start_kubelet: StartKubelet,
    log_in: Callable[[dict[str, Any]], Connection],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(connection_module, "LOGIN_PATIENCE_SECONDS", 3.0)
    monkeypatch.setattr(connection_module, "WARN_SECONDS", 0.0)
    kubelet = start_kubelet(num_nodes=2)
    kubelet.may_end.clear()
    grant_run(connection, namespace)
    setup = Setup.make(connection, namespace, store, make_cells(6), max_in_flight=2)
    first = request_token(connection, namespace, "first")
    running = setup.start(log_in({"token": first}))
    wait_for(lambda: len(setup.list_jobs()) == 2, "two Jobs")

    end_token(control_plane, connection, namespace, "first", first)
    kubelet.may_end.set()
    with pytest.raises(UserError) as error:
        running.result(DEADLINE_SECONDS)

    refused = "the API server does not accept the credentials (401 Unauthorized), which may have expired"
    user = f"{tmp_path}/kubeconfig: user `{connection.context}`"
    hint = "log in again, or write new ones there; Jobs that were submitted go on, and the same command resumes the run"
    assert str(error.value) == f"--on {connection.context}: {refused}: {user}; {hint}"
    assert f"{refused}; it is tried again, for 3 s in all" in setup.observed.warnings


def test_an_api_server_that_is_away_at_the_beginning_is_told_at_once_with_how_long_it_is_waited_for(
    control_plane: ControlPlane,
    connection: Connection,
    namespace: str,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(connection_module, "FIRST_PATIENCE_SECONDS", 3.0)
    monkeypatch.setattr(connection_module, "WARN_SECONDS", 0.0)
    setup = Setup.make(connection, namespace, store, make_cells(1))
    control_plane.write_kubeconfig(tmp_path / "kubeconfig", server=f"https://127.0.0.1:{find_free_port()}")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    away = Connection(context=control_plane.context, patience_seconds=DEADLINE_SECONDS)

    with pytest.raises(TransientError):
        setup.make_cluster_run().measure(setup.run, away, setup.observed, Console(file=io.StringIO()))

    (warning,) = setup.observed.warnings  # once, however often it was tried
    assert warning.startswith("the API server does not answer: ")
    assert warning.endswith("; it is tried again, for 3 s in all")

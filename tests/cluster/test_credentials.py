"""Tokens of a real API server that end during a run, and an API server that is away when a run begins."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from audit import request_token
from commands import create
from runs import DEADLINE_SECONDS, Site, check_all_once, make_cells, wait_for
from users import grant_run

from control_plane import ControlPlane
from runner.kubernetes.connection import Connection

ACCOUNT = "short-lived"


def make_token(connection: Connection, namespace: str, name: str) -> str:
    """Return a token of the API server's own that ends when `end_token` is called with the same name."""
    create(connection, f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}})
    bound = {"kind": "Secret", "apiVersion": "v1", "name": name}
    return request_token(connection, namespace, ACCOUNT, boundObjectRef=bound)


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
    site: Site, control_plane: ControlPlane, log_in: Callable[[dict[str, Any]], Connection], tmp_path: Path, source: str
) -> None:
    kubelet = site.start_kubelet(num_nodes=2)
    kubelet.may_end.clear()
    create(site.connection, f"/api/v1/namespaces/{site.namespace}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": site.namespace}
    grant_run(site.connection, site.namespace, subject)
    token = tmp_path / "token"
    first = make_token(site.connection, site.namespace, "first")
    token.write_text(first)
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "%s"}}
    script = f'printf \'{json.dumps(answer)}\' "$(cat "$0")"'
    plugin = {"apiVersion": answer["apiVersion"], "command": "sh", "args": ["-c", script, str(token)]}
    setup = site.make_setup(make_cells(6), max_in_flight=2)
    running = setup.start(log_in({"tokenFile": str(token)} if source == "token file" else {"exec": plugin}))
    wait_for(setup.count_ready, "a cell that runs")

    second = make_token(site.connection, site.namespace, "second")
    end_token(control_plane, site.connection, site.namespace, "first", first)
    kubelet.may_end.set()
    wait_for(setup.count_finished, "a Job that has ended")
    token.write_text(second)  # a little late
    running.result(DEADLINE_SECONDS)

    check_all_once(setup, kubelet, 6)

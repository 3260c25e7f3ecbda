"""What `setup` makes of answers that others had a hand in: a Secret, an object that is there already, a busy server."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.errors import TransientError, UserError
from kubeconfigs import write_kubeconfig
from lying_server import Answer, LyingServer
from runner.kubernetes.connection import Connection
from runner.kubernetes.rendering.queue_template import QueueTemplate
from runner.kubernetes.rendering.setup_template import SetupTemplate
from runner.kubernetes.setup import Installer
from runner.profiles.loading import load_profile

KEYS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "it's; touch x"}


class Server(LyingServer):
    """Keeps what is applied, and answers a request for a Secret with one that holds these keys."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, str] = KEYS
        self.objects: dict[str, Any] = {}
        """By the last two parts of the path: `roles/x`."""
        self.refusals: dict[str, int] = {}
        """HTTP status by verb."""
        self.applied: list[str] = []

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        if verb in self.refusals:
            status = self.refusals[verb]
            return status, {}, json.dumps({"kind": "Status", "reason": "x", "message": "not now"}).encode()
        url = urlsplit(path)
        key = "/".join(url.path.split("/")[-2:])
        if verb == "PATCH":
            self.objects[key] = json.loads(body)
            self.applied.append(f"{key} {url.query.rpartition('=')[2]}")
        if key.endswith("kueue.x-k8s.io"):
            return 200, {}, b'{"versions": [{"version": "v1beta2"}]}'
        if key.startswith("secrets/"):
            data = {name: base64.b64encode(value.encode()).decode() for name, value in self.keys.items()}
            return 200, {}, json.dumps({"metadata": {"name": "s"}, "data": data}).encode()
        found = self.objects.get(key)
        return (404, {}, b"{}") if found is None else (200, {}, json.dumps(found).encode())


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def connection(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    write_kubeconfig(tmp_path / "kubeconfig", server.url)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return Connection(context="tests", patience_seconds=0.0)


@pytest.fixture
def installer(connection: Connection) -> Installer:
    return Installer(connection=connection, template=SetupTemplate(profile=load_profile("kind"), has_store=True))


def make_queue(connection: Connection, namespace: str, queue: str) -> Installer:
    """Return what sets up a namespace with a queue."""
    profile = load_profile("eks").model_copy(update={"namespace": namespace})
    template = QueueTemplate.parse(profile, queue, ["cpu=1"], None)
    return Installer(connection=connection, template=SetupTemplate(profile=profile, has_queue=True), queue=template)


def test_a_shell_gets_the_variables_of_the_store_and_no_other(server: Server, installer: Installer) -> None:
    server.keys = KEYS | {"X=1; touch x; Y": "z", "PROMPT_COMMAND": "touch x", "LD_PRELOAD": "/x.so"}

    variables, left_out = installer.read_store_environment()

    assert variables == KEYS | {"AWS_ENDPOINT_URL": "http://127.0.0.1:30900"}
    assert left_out == (
        "Secret benchmatrix-store: not printed, as no set-up writes them: LD_PRELOAD, PROMPT_COMMAND, X=1; touch x; Y"
    )


def test_of_a_secret_that_a_setup_makes_nothing_is_left_out(server: Server, installer: Installer) -> None:
    server.keys = installer.template.render_store_secret("AKIA", "key")["stringData"]

    variables, left_out = installer.read_store_environment()

    assert left_out == ""
    assert variables == server.keys | {"AWS_ENDPOINT_URL": "http://127.0.0.1:30900"}


def test_a_secret_without_the_keys_of_a_store_leads_to_none(server: Server, installer: Installer) -> None:
    server.keys = {"AWS_ACCESS_KEY_ID": "AKIA", "password": "p"}

    with pytest.raises(UserError, match="Secret benchmatrix-store in namespace .* has no AWS_SECRET_ACCESS_KEY: "):
        installer.read_store_environment()


def test_a_queue_that_has_the_name_of_another_namespaces_is_not_taken_over(
    server: Server, connection: Connection
) -> None:
    make_queue(connection, "team-a", "b").install()
    before = dict(server.objects)
    assert "clusterqueues/team-a-b" in before

    with pytest.raises(UserError) as refused:
        make_queue(connection, "team", "a-b").install()

    assert str(refused.value).startswith(
        "--on tests: ClusterQueue team-a-b: is there already, and this tool did not make it for namespace team (its "
        "namespaceSelector names team-a); nothing was changed; give the queue another name with --queue"
    )
    assert server.objects == before
    make_queue(connection, "team-a", "b").install()  # its own may be applied again


@pytest.mark.parametrize("key", ["clusterqueues/team-b", "localqueues/b", "roles/benchmatrix-runner"])
@pytest.mark.parametrize("labels", [{}, {"app.kubernetes.io/managed-by": "Helm"}])
def test_what_others_made_keeps_what_it_says(
    server: Server, connection: Connection, key: str, labels: dict[str, str]
) -> None:
    make_queue(connection, "team", "b").install()
    server.objects[key]["metadata"]["labels"] = labels
    before = json.dumps(server.objects)

    with pytest.raises(UserError, match=rf" {key.partition('/')[2]}: is there already.*managed-by is (Helm|not set)"):
        make_queue(connection, "team", "b").install()

    assert json.dumps(server.objects) == before


def test_what_may_not_be_read_is_applied_only_where_nobody_else_has_set_it(
    server: Server, connection: Connection
) -> None:
    """Whoever may not read it cannot tell whose it is; the API server can, without `force`."""
    server.refusals = {"GET": 403}
    profile = load_profile("gke")

    Installer(connection=connection, template=SetupTemplate(profile=profile)).install()

    assert "roles/benchmatrix-runner false" in server.applied
    assert "serviceaccounts/benchmatrix-cell true" in server.applied


@pytest.mark.parametrize("verb", ["GET", "PATCH"])
def test_a_server_that_is_away_is_no_fault_of_the_user(server: Server, installer: Installer, verb: str) -> None:
    server.refusals = {verb: 503}

    with pytest.raises(TransientError, match="the API server answers 503: not now"):
        installer.install()

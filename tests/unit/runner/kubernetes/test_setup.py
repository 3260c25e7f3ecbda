"""What `setup` makes of answers that others had a hand in: a Secret, an object that is there already, a busy server."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import UserError
from fuzz.servers import Answer, LyingServer
from kubeconfigs import write_kubeconfig
from runner.kubernetes.connection import Connection
from runner.kubernetes.rendering.setup_template import SetupTemplate
from runner.kubernetes.setup import Installer
from runner.profiles.loading import load_profile

KEYS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "it's; touch x"}


class SecretServer(LyingServer):
    """Answers a request for a Secret with one that holds these keys."""

    keys: dict[str, str] = KEYS

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        data = {name: base64.b64encode(value.encode()).decode() for name, value in self.keys.items()}
        return 200, {}, json.dumps({"metadata": {"name": "s"}, "data": data}).encode()


@pytest.fixture
def server() -> Iterator[SecretServer]:
    running = SecretServer()
    yield running
    running.stop()


@pytest.fixture
def installer(server: SecretServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    write_kubeconfig(tmp_path / "kubeconfig", server.url)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    connection = Connection(context="tests", patience_seconds=0.0)
    return Installer(connection=connection, template=SetupTemplate(profile=load_profile("kind"), has_store=True))


def test_a_shell_gets_the_variables_of_the_store_and_no_other(server: SecretServer, installer: Installer) -> None:
    server.keys = KEYS | {"X=1; touch x; Y": "z", "PROMPT_COMMAND": "touch x", "LD_PRELOAD": "/x.so"}

    variables, left_out = installer.read_store_environment()

    assert variables == KEYS | {"AWS_ENDPOINT_URL": "http://127.0.0.1:30900"}
    assert left_out == (
        "Secret benchmatrix-store: not printed, as no set-up writes them: LD_PRELOAD, PROMPT_COMMAND, X=1; touch x; Y"
    )


def test_of_a_secret_that_a_setup_makes_nothing_is_left_out(server: SecretServer, installer: Installer) -> None:
    server.keys = installer.template.render_store_secret("AKIA", "key")["stringData"]

    variables, left_out = installer.read_store_environment()

    assert left_out == ""
    assert variables == server.keys | {"AWS_ENDPOINT_URL": "http://127.0.0.1:30900"}


def test_a_secret_without_the_keys_of_a_store_leads_to_none(server: SecretServer, installer: Installer) -> None:
    server.keys = {"AWS_ACCESS_KEY_ID": "AKIA", "password": "p"}

    with pytest.raises(UserError, match="Secret benchmatrix-store in namespace .* has no AWS_SECRET_ACCESS_KEY: "):
        installer.read_store_environment()

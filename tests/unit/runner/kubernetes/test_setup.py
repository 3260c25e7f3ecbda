"""What `setup` makes of objects that others made: a Secret, and what is there already."""

import base64
import json
from typing import Any, cast

import pytest

from bench.errors import UserError
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.setup import Installer, SetupTemplate
from runner.profiles.loading import load_profile

KEYS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "it's; touch x"}


class Cluster:
    """Keeps what is applied, by path, and whether it was forced."""

    context = "tests"

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.forced: dict[str, bool] = {}
        self.refusal: int | None = None

    def get_object(self, path: str) -> Any:
        if self.refusal or path not in self.objects:
            raise ApiError(self.refusal or 404, "x", "not now")
        return self.objects[path]

    def request(self, verb: str, path: str, query: dict[str, str] | None = None, body: bytes = b"", **_: str) -> None:
        self.objects[path] = json.loads(body)
        if verb == "patch":
            self.forced["/".join(path.split("/")[-2:])] = (query or {}).get("force") == "true"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def make_installer(cluster: Cluster, profile: str = "kind", *, has_store: bool = True) -> Installer:
    template = SetupTemplate(profile=load_profile(profile), has_store=has_store)
    return Installer(connection=cast(Connection, cluster), template=template)


def set_keys(cluster: Cluster, keys: dict[str, str]) -> None:
    data = {name: base64.b64encode(value.encode()).decode() for name, value in keys.items()}
    cluster.objects["/api/v1/namespaces/benchmatrix/secrets/benchmatrix-store"] = {"data": data}


def test_a_shell_gets_the_variables_of_the_store_and_no_other(cluster: Cluster) -> None:
    set_keys(cluster, KEYS | {"X=1; touch x; Y": "z", "PROMPT_COMMAND": "touch x"})
    assert make_installer(cluster).read_store_environment() == KEYS | {"AWS_ENDPOINT_URL": "http://127.0.0.1:30900"}


def test_a_secret_without_the_keys_of_a_store_leads_to_none(cluster: Cluster) -> None:
    set_keys(cluster, {"AWS_ACCESS_KEY_ID": "AKIA", "password": "p"})
    with pytest.raises(UserError, match="Secret benchmatrix-store in namespace .* has no AWS_SECRET_ACCESS_KEY: "):
        make_installer(cluster).read_store_environment()


def test_only_what_this_tool_made_is_set_back(cluster: Cluster) -> None:
    installer = make_installer(cluster)
    installer.install()
    assert set(cluster.forced.values()) == {True}
    role = next(value for path, value in cluster.objects.items() if path.endswith("/roles/benchmatrix-runner"))
    role["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    installer.install()
    assert cluster.forced["roles/benchmatrix-runner"] is False
    assert cluster.forced["rolebindings/benchmatrix-runner"] is True


def test_what_may_not_be_read_is_applied_only_where_nobody_else_has_set_it(cluster: Cluster) -> None:
    """Whoever may not read it cannot tell whose it is; the API server can, without `force`."""
    cluster.refusal = 403
    make_installer(cluster, "gke", has_store=False).install()
    assert set(cluster.forced.values()) == {False}

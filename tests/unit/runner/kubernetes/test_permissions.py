"""What the user may not do is one message with all that is missing; a cluster that does not say refuses nothing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import UserError
from kubeconfigs import write_kubeconfig
from lying_server import Answer, LyingServer
from runner.kubernetes.connection import Connection
from runner.kubernetes.permissions import RUN_PERMISSIONS, check_permissions


class ReviewServer(LyingServer):
    """Answers as the reviews of an API server whose user may do everything but what is refused."""

    refused: frozenset[tuple[str, str, str]] = frozenset()
    """Verb, resource and subresource."""
    status = 201
    num_reviews = 0

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        self.num_reviews += 1
        if path.endswith("selfsubjectreviews"):
            found: dict[str, object] = {"metadata": {}, "status": {"userInfo": {"username": "maria"}}}
        else:
            asked = json.loads(body)["spec"]["resourceAttributes"]
            right = (asked["verb"], asked["resource"], asked["subresource"])
            found = {"metadata": {}, "status": {"allowed": right not in self.refused}}
        return self.status, {}, json.dumps(found).encode()


@pytest.fixture
def server() -> Iterator[ReviewServer]:
    running = ReviewServer()
    yield running
    running.stop()


@pytest.fixture
def asking(server: ReviewServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    write_kubeconfig(tmp_path / "kubeconfig", server.url)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return Connection(context="tests", patience_seconds=0.0)


def test_every_right_that_is_missing_is_named_with_the_command_that_grants_it(
    server: ReviewServer, asking: Connection
) -> None:
    server.refused = frozenset({("watch", "jobs", ""), ("get", "pods", "log"), ("list", "events", "")})

    with pytest.raises(UserError) as error:
        check_permissions(asking, "lab", RUN_PERMISSIONS, "a run")

    message = str(error.value)
    assert message.startswith("--on tests: maria lacks rights in namespace lab that a run needs: watch jobs.batch (to")
    assert "; get pods/log (to " in message
    assert "; list events (to " in message
    assert "list, watch" not in message
    assert "`benchmatrix setup --on tests --namespace lab --user maria`" in message


def test_what_a_command_can_do_without_is_not_asked_for(server: ReviewServer, asking: Connection) -> None:
    server.refused = frozenset({("deletecollection", "jobs", "")})

    check_permissions(asking, "lab", RUN_PERMISSIONS, "a run", spared=("deletecollection",))

    assert server.num_reviews == sum(len(permission.verbs) for permission in RUN_PERMISSIONS) - 1


@pytest.mark.parametrize("status", [403, 404])
def test_a_cluster_that_answers_no_such_question_refuses_nothing(
    server: ReviewServer, asking: Connection, status: int
) -> None:
    server.status = status
    check_permissions(asking, "lab", RUN_PERMISSIONS, "a run")

"""The Docker client, or what has its name, fails or hangs: one message, no traceback, no secret."""

from pathlib import Path

import pytest

from bench.errors import UserError
from fake_interpreters import make_interpreter
from runner.images.docker import is_built, push_images, run_docker
from runner.images.names import find_image


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the client, the only program on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "docker"


def test_an_image_without_a_digest_is_told(docker: Path) -> None:
    make_interpreter(docker, "echo other/x@sha256:dd")
    with pytest.raises(UserError, match="names no digest of host.example/team/pytorch; was it pushed there"):
        push_images("host.example/team", [find_image("pytorch", "cpu")], {})


def test_a_missing_client_is_told(docker: Path) -> None:
    with pytest.raises(UserError, match="docker: is not installed"):
        is_built("x")


def test_a_failure_is_told_with_the_end_of_its_errors_and_without_credentials(docker: Path) -> None:
    make_interpreter(docker, "echo 'RUN HF_TOKEN=hunter2 pip install' >&2; echo last >&2; exit 3")
    with pytest.raises(UserError, match=r"^docker build failed \(exit code 3\):\n(.*\n)*last$") as caught:
        run_docker("build", ".")
    assert "hunter2" not in str(caught.value)

"""The Docker client, or what has its name, answers something else than was asked: one message, no traceback."""

from pathlib import Path

import pytest

from bench.errors import UserError
from runner.images.docker import is_built, read_digest, read_image_id, read_size_bytes, run_docker
from runner.images.sbom import format_bom

NAME = "host.example/team/pytorch:cpu-00"


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the client, the only program on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "docker"


def answer(docker: Path, content: bytes) -> None:
    docker.with_name("answer").write_bytes(content)
    docker.write_text(f'#!/bin/sh\nwhile IFS= read -r line; do echo "$line"; done < {docker.with_name("answer")}\n')
    docker.chmod(0o755)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"twelve", b"\xc2\xb2", b"1\n2", b"9" * 5000])
def test_garbage_is_named_with_what_was_expected(docker: Path, content: bytes) -> None:
    answer(docker, content + b"\n")
    with pytest.raises(UserError, match="docker image inspect .*: printed '.*', expected a number of bytes"):
        read_size_bytes(NAME)
    with pytest.raises(UserError, match="docker image inspect .*: printed '.*', expected a digest"):
        read_image_id(NAME)


@pytest.mark.parametrize("content", [b"", b"other/x@sha256:" + b"d" * 64, b"host.example/team/pytorch@sha256:dd"])
def test_an_image_without_a_digest_is_told(docker: Path, content: bytes) -> None:
    answer(docker, content + b"\n")
    with pytest.raises(UserError, match="names no digest of host.example/team/pytorch; was it pushed there"):
        read_digest(NAME)


def test_a_program_that_is_none_is_told(docker: Path) -> None:
    docker.write_bytes(b"\x7fELF garbage")
    docker.chmod(0o755)
    with pytest.raises(UserError, match="docker: cannot be run .*; is it the Docker client"):
        is_built(NAME)


def test_one_that_may_not_be_executed_counts_as_missing(docker: Path) -> None:
    docker.write_text("#!/bin/sh\n")
    docker.chmod(0o644)
    with pytest.raises(UserError, match="docker: is not installed"):
        run_docker("version")


@pytest.mark.parametrize(("python", "debian"), [("no JSON", ""), ("[7]", ""), ("[]", "one two")])
def test_packages_that_are_none_are_told(python: str, debian: str) -> None:
    with pytest.raises(UserError, match="printed something else than the packages in it"):
        format_bom(NAME, "sha256:ab", python, debian)


def test_one_that_prints_without_end_is_ended(docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.images.docker.MAX_OUTPUT_BYTES", 10_000)
    docker.write_text("#!/bin/sh\nwhile :; do echo packages; echo errors >&2; done\n")
    docker.chmod(0o755)
    with pytest.raises(UserError, match="docker run: printed more than 10,000 bytes; is `docker` the Docker client"):
        run_docker("run", NAME)


def test_a_failure_is_told_with_the_end_of_its_errors(docker: Path) -> None:
    docker.write_text("#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9; do echo line $i of 9 >&2; done\nexit 3\n")
    docker.chmod(0o755)
    with pytest.raises(UserError, match=r"^docker build failed \(exit code 3\):\n(.*\n)*line 9 of 9$"):
        run_docker("build", ".")


def test_an_engine_that_hangs_is_one_message(docker: Path) -> None:
    docker.write_text("#!/bin/sh\n/bin/sleep 600\n")
    docker.chmod(0o755)
    with pytest.raises(
        UserError, match=r"^docker image: has not ended after 0\.5 s; see what the Docker engine waits for$"
    ):
        run_docker("image", "ls", limit_seconds=0.5)


def test_a_failure_repeats_no_credential_that_a_step_printed(docker: Path) -> None:
    docker.write_text("#!/bin/sh\necho 'RUN HF_TOKEN=hunter2 pip install' >&2\nexit 1\n")
    docker.chmod(0o755)
    with pytest.raises(UserError, match="docker build failed") as caught:
        run_docker("build")
    assert "hunter2" not in str(caught.value)

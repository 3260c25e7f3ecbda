"""runner.images.docker: a client that cannot be started, or that answers something else, is named in a message."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import UserError
from runner.images.docker import read_digest, read_image_id, read_size_bytes, run_docker

NAME = "host.example/team/jax:cpu-00"


@pytest.fixture
def write_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Make a program the only one on the PATH, under Docker's name."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(content: bytes) -> None:
        (tmp_path / "docker").write_bytes(content)
        (tmp_path / "docker").chmod(0o755)

    return write


def printing(text: bytes) -> bytes:
    return b"#!/bin/sh\n/bin/cat <<'END'\n" + text + b"\nEND\n"


@pytest.mark.parametrize("content", [b"#!/no/such\n", b"\x7fELF", b""])
def test_a_client_that_cannot_be_started_is_named(content: bytes, write_docker: Callable[[bytes], None]) -> None:
    write_docker(content)
    with pytest.raises(UserError, match=r"^\S*/docker: cannot be started \(.*\); install Docker's client anew$"):
        run_docker("version")


def test_what_is_no_utf_8_is_replaced(write_docker: Callable[[bytes], None]) -> None:
    write_docker(printing(b"caf\xe9"))
    assert run_docker("version") == "caf\ufffd"


@pytest.mark.parametrize("read", [read_size_bytes, read_image_id, read_digest])
@pytest.mark.parametrize("text", [b"", b"\x00\xff", b"7.5", b"9" * 5000, b"host.example/team/jax@latest"])
def test_an_answer_that_is_none_is_shown_as_it_is(
    read: Callable[[str], object], text: bytes, write_docker: Callable[[bytes], None]
) -> None:
    write_docker(printing(text))
    with pytest.raises(
        UserError, match=r"^docker image inspect: printed .*, expected the (size|id|digest) of host"
    ) as error:
        read(NAME)
    assert str(error.value).isprintable()


def test_good_answers_are_read(write_docker: Callable[[bytes], None]) -> None:
    write_docker(printing(b"2000000"))
    assert read_size_bytes(NAME) == 2_000_000
    write_docker(printing(b"sha256:ab"))
    assert read_image_id(NAME) == "sha256:ab"
    write_docker(printing(b"elsewhere/x@sha256:ee\nhost.example/team/jax@sha256:dd"))
    assert read_digest(NAME) == "host.example/team/jax@sha256:dd"

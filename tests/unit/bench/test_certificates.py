"""SSL_CERT_FILE: what has no end is refused before a library reads it."""

import os
import re
from pathlib import Path

import pytest

from bench.certificates import check_certificates
from bench.store import Store, StoreError


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.parametrize("url", ["s3://bkt/runs", "gs://bkt/runs", "az://bkt/runs"])
def test_a_store_is_not_opened_with_certificates_of_a_pipe(
    url: str, pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(pipe))
    with pytest.raises(StoreError, match=re.escape(f"store {url}: SSL_CERT_FILE: {pipe}: ")) as caught:
        Store.open(url)
    assert "expected a file of certificates in PEM" in str(caught.value)


def test_a_device_is_refused() -> None:
    with pytest.raises(ValueError, match="SSL_CERT_FILE: /dev/zero: "):
        check_certificates({"SSL_CERT_FILE": "/dev/zero"})


@pytest.mark.parametrize("content", ["a certificate", None])
def test_a_file_and_one_that_is_not_there_are_left_to_the_libraries(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    check_certificates({"SSL_CERT_FILE": str(tmp_path / "ca.pem")})
    check_certificates({"SSL_CERT_FILE": ""})
    check_certificates({})

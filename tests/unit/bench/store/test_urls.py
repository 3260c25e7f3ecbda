"""Store URLs: which are opened, and how those that name no store are refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.store import Store, StoreError
from s3_server import S3Server


def test_a_relative_directory_is_made_where_the_process_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.open("file://results/a b")
    monkeypatch.chdir("/")
    store.put("x", b"1")
    assert (tmp_path / "results" / "a b" / "x").read_bytes() == b"1"
    assert store.url == "file://results/a b"


def test_the_prefix_of_a_bucket_is_part_of_every_object_name(s3_server: S3Server) -> None:
    Store.open(f"s3://{s3_server.bucket}/team/a/").put("x", b"1")
    assert (s3_server.root / s3_server.bucket / "team" / "a" / "x").read_bytes() == b"1"


def test_a_plain_path_is_refused_with_the_url_to_write() -> None:
    with pytest.raises(StoreError, match="write file://some/results"):
        Store.open("some/results")


def test_an_unknown_scheme_is_refused_with_those_known() -> None:
    with pytest.raises(StoreError, match="'ftp://' is unknown; known are file, s3, gs, az"):
        Store.open("ftp://host/results")


@pytest.mark.parametrize(
    "url", ["file://", "s3://", "s3:///a", "s3://bkt?region=x", "s3://bkt/../a", "s3://bkt//a", "gs://"]
)
def test_urls_that_name_no_place_are_refused(url: str) -> None:
    with pytest.raises(StoreError):
        Store.open(url)


@pytest.mark.parametrize("url", ["file://x\udcff", "file://results"])
def test_a_directory_whose_name_is_no_text_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if url == "file://results":  # the current directory is the one with the name
        tmp_path = tmp_path / "x\udcff"
        tmp_path.mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="has bytes that are no UTF-8") as caught:
        Store.open(url)
    assert str(caught.value).isascii()


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(StoreError) as caught:
        Store.open("s3://AKIA1:hunter2@bkt")
    assert "hunter2" not in str(caught.value)


def test_credentials_in_the_endpoint_are_refused_and_not_repeated(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:hunter2@127.0.0.1:9000")
    with pytest.raises(StoreError, match="holds credentials") as caught:
        Store.open("s3://bkt")
    assert "hunter2" not in str(caught.value)


def test_settings_that_a_cloud_lacks_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_USE_EMULATOR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(StoreError, match=r"Account must be specified; the settings come from .* AZURE_\* variables"):
        Store.open("az://container/prefix")


@pytest.mark.parametrize("url", ["AKIA:secret@b", "s3:/AKIA:secret@b", "s3//AKIA:secret@b", "file://AKIA:secret@/x"])
def test_a_user_and_password_in_what_is_no_url_of_a_store_are_not_shown(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("~nosuchuser/x", "there is no such user"),
        ("/" + "x" * 5000, "cannot be the name of a directory (File name too long)"),
        ("/a\0b", "cannot be the name of a directory (embedded null byte)"),
    ],
)
def test_what_can_be_no_directory_is_refused_in_one_short_message(path: str, reason: str) -> None:
    with pytest.raises(StoreError) as caught:
        Store.open(f"file://{path}")
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_relative_store_in_a_directory_that_was_deleted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StoreError, match="the current directory was deleted"):
        Store.open("file://results")


def test_only_a_bucket_of_s3_imports_boto3(tmp_path: Path) -> None:
    program = f"import sys; from bench.store import Store; Store.open('file://{tmp_path}'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"boto3", "botocore"} & set(done.stdout.split())

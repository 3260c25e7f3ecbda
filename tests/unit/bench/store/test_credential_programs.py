"""Programs that give AWS credentials (credential_process): they end, and what they say of secrets is hidden."""

import os
from pathlib import Path

import pytest

from bench.store import Store, StoreError
from bench.store.settings import TOKEN_FILES

SETTINGS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture(autouse=True)
def right_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("program", "seconds", "reason"),
    [("sleep 600", 0.5, "has not answered after 0.5 s"), ("yes", 600.0, "prints without end")],
)
def test_a_program_for_credentials_that_has_no_end_is_ended(
    program: str, seconds: float, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bench.store.settings.LOGIN_SECONDS", seconds)
    monkeypatch.setattr("bench.store.settings.MAX_LOGIN_BYTES", 20 * 2**20)
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {program}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match=rf"store s3://bkt: .*credential_process .* of the profile\) {reason}"):
        Store.open("s3://bkt")


def test_what_a_program_for_credentials_says_is_shown_without_credentials(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    secrets = '{"SecretAccessKey": "hunter2hunter2hunter2"} AWS_SESSION_TOKEN=hunter2 eyJhbGciOiJI.hunter2.x'
    program.write_text(f"echo the login has expired >&2\necho '{secrets}' >&2\nhead -c 2000000 /dev/zero >&2\nexit 3\n")
    (tmp_path / "config").write_text(f"[default]\ncredential_process = sh {program}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match="the login has expired") as caught:
        Store.open("s3://bkt")
    assert "hunter2" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", TOKEN_FILES)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_token_file_that_is_none_is_named(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = {"pipe": tmp_path / "pipe", "device": Path("/dev/zero"), "folder": tmp_path}[kind]
    monkeypatch.setenv(name, str(path))
    with pytest.raises(StoreError, match=f"^store s3://bkt: {name}: {path}: is a .*; expected a file with a token"):
        Store.open("s3://bkt")


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("AWS_REGION", "a/b?c", r"the region \(AWS_REGION"),
        ("AWS_REGION", "us\n1", r"the region \(AWS_REGION"),
        ("AWS_MAX_ATTEMPTS", "banana", r"a setting that is a number \(AWS_MAX_ATTEMPTS"),
    ],
)
def test_a_setting_that_is_none_is_named_and_not_the_endpoint(
    name: str, value: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match=f"^store s3://bkt: {named}"):
        Store.open("s3://bkt")

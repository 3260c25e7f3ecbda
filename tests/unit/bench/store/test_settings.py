"""bench.store: settings that cannot be right are refused by name, before or after the store library panics at them."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import obstore.store
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.exceptions import BaseError

from bench.exit_codes import EXIT_INTERNAL_ERROR, EXIT_USER_ERROR
from bench.order import Order
from bench.store import Store, StoreError
from bench.store.backend import Backend
from bench.store.settings import ACCOUNT_FILES, ACCOUNT_KEY, check_endpoint
from factories import make_cell

SOURCES = Path(__file__).parents[4] / "images" / "bench" / "src"
SETTINGS = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "hunter2",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_DEFAULT_REGION": "us-east-1",
}
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
BAD_KEYS = ("hunter2\n", "hunter2\r\nX-Evil: 1", " hunter2", "hunter2\t", "hünter2", "hunter2\x01", "hunter2\u2028")
BAD_ENDPOINTS = (
    "http://[",
    "http://host:99999",
    "http://host:-1",
    "http://host:abc",
    "http://host:0",
    "http://1.2.3.4.5",
    "http://999.1.1.1",
    "http://host/ä b",
    "http://host/a b",
    "http://host?q=1",
    "http://host#x",
    "ftp://host",
    "http://host\n",
    "host",
    "http://host/a`b",
    "http://a%41",
    "http://a!b",
    "http://xn--",
    "http://xn--a.example:9000",
    "http://a.0x1",
    "http://[1]",
    "http://[::1%25eth0]",
    "http://a..b",
    "http://" + "a" * 64,
    "http://" + "a." * 127,
)
BAD_VARIABLES = {
    "AZURE_STORAGE_ACCOUNT_NAME": "a\nb",
    "AZURE_STORAGE_TOKEN": "a b",
    "AZURE_STORAGE_ENDPOINT": "http://xn--",
    "AZURE_CLIENT_ID": "a b",
    "GOOGLE_BASE_URL": "http://a b",
}
HOSTS = st.text("ab01.-_%x[]:!é`\\", min_size=1, max_size=8) | st.text("a0.-", max_size=9).map("xn--{}".format)


@pytest.fixture(autouse=True)
def right_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """Settings that are right except for the server, which nobody has started."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setattr("bench.store.backend.RETRY_SECONDS", 0.1)
    monkeypatch.setattr("bench.store.backend.PUT_RETRY_SECONDS", 0.1)
    return dict(SETTINGS)


@pytest.mark.parametrize("value", BAD_KEYS)
@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_no_header_can_carry_is_refused_by_name_and_not_shown(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(StoreError) as caught:
        Store.open("s3://bkt")
    assert name in str(caught.value)
    assert "nter2" not in str(caught.value)


def test_a_key_in_a_file_is_refused_by_the_name_that_it_has_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = hünter2\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match="aws_access_key_id .*shared-credentials-file") as caught:
        Store.open("s3://bkt")
    assert "nter2" not in str(caught.value)


def test_a_key_that_goes_bad_when_it_is_renewed_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ticket = tmp_path / "ticket.json"
    config = tmp_path / "config"
    config.write_text(f"[default]\ncredential_process = cat {ticket}\n")
    ticket.write_text(
        '{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "s", "SessionToken": "hunter2\\n", '
        '"Expiration": "2999-01-01T00:00:00Z"}'
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match="aws_session_token") as caught:
        Store.open("s3://bkt").check_writable()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("value", BAD_ENDPOINTS)
def test_an_endpoint_that_is_no_url_of_a_server_is_refused_by_name(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", value)
    with pytest.raises(StoreError, match="AWS_ENDPOINT_URL") as caught:
        Store.open("s3://bkt")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["http://host", "https://host:1", "http://[::1]:9000", "http://10.0.0.1:65535/a/b/"])
def test_an_endpoint_that_is_one_is_taken(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", value)
    assert Store.open("s3://bkt").backend.place == value


def test_a_password_in_an_endpoint_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for endpoint in ("http://me:hunter2@h_h", "http://me:hunter2@host:99999", "http://me:hunter2@host\n"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(StoreError) as caught:
            Store.open("s3://bkt")
        assert "hunter2" not in str(caught.value)


@settings(derandomize=True, max_examples=150, database=None, deadline=None)
@given(HOSTS)
def test_whatever_host_is_taken_the_library_does_not_panic_at(host: str) -> None:
    url = f"http://{host}"
    try:
        check_endpoint(url)
    except ValueError:
        return
    nowhere = "http://127.0.0.1:9"  # no name is looked up
    store = obstore.store.S3Store(
        "b",
        endpoint=url,
        access_key_id="a",
        secret_access_key="b",
        client_options={"allow_http": True, "proxy_url": nowhere},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=1)},
    )
    with pytest.raises(BaseError):  # and no panic, which is none
        store.head("x")


@pytest.mark.parametrize("name", BAD_VARIABLES)
def test_a_variable_of_another_cloud_that_no_request_can_carry_is_refused_by_name(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, BAD_VARIABLES[name])
    url = "gs://bkt" if name.startswith("GOOGLE") else "az://bkt"
    with pytest.raises(StoreError, match=f"store {url}: {name} .*; fix the GOOGLE") as caught:
        Store.open(url).list_run_ids()
    assert BAD_VARIABLES[name] not in str(caught.value)
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.parametrize("region", ["us\neast", "üs", "a b", ""])
@pytest.mark.parametrize("name", ["AWS_DEFAULT_REGION", "AWS_REGION"])
def test_a_region_that_is_none_is_refused_or_not_looked_at(
    name: str, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, region)
    with pytest.raises(StoreError):
        Store.open("s3://bkt").check_writable()


def test_the_region_is_that_of_aws_region_before_boto3s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert "eu-north-1" in Store.open("s3://bkt").backend.place
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert "eu-central-1" in Store.open("s3://bkt").backend.place


@pytest.mark.parametrize("name", ["AWS_CONDITIONAL_PUT", "AWS_CHECKSUM_ALGORITHM", "AWS_SKIP_SIGNATURE"])
def test_what_the_library_alone_refuses_is_one_message(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "garbage")
    with pytest.raises(StoreError, match=r"store s3://bkt: .*AWS_\*") as caught:
        Store.open("s3://bkt")
    assert "\n" not in str(caught.value)


def test_a_panic_of_the_library_is_a_store_error_whatever_was_called() -> None:
    panicking = obstore.store.S3Store(
        "bkt", endpoint="http://host:99999", client_options={"allow_http": True}, access_key_id="a"
    )
    store = Store(
        url="s3://bkt",
        backend=Backend(place="http://host:99999", long_retries=panicking, short_retries=panicking, settings="AWS_*"),
    )
    calls = (
        store.check_writable,
        lambda: store.put("x", b"1"),
        lambda: store.put_with_short_retries("x", b"1"),
        lambda: store.get("x"),
        lambda: list(store.get_listed(["x"])),
        lambda: list(store.list_keys("")),
        store.list_run_ids,
    )
    for call in calls:
        with pytest.raises(StoreError, match=r"store s3://bkt: .*AWS_\*"):
            call()


@pytest.mark.parametrize(
    ("name", "value"),
    [("AWS_SESSION_TOKEN", "hunter2\n"), ("AWS_ENDPOINT_URL", "http://h:99999"), ("AWS_ACCESS_KEY_ID", "hünter2")],
)
def test_a_container_with_a_bad_setting_ends_with_the_exit_code_of_a_users_error(name: str, value: str) -> None:
    order = Order(cell=make_cell(), run_id="r", repeat=1, attempt="a", store_url="s3://bkt")
    variables = {**os.environ, **order.to_variables(), name: value, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run([sys.executable, "-m", "bench"], env=variables, capture_output=True, text=True)
    assert (done.returncode, name in done.stderr, "nter2" in done.stderr) == (EXIT_USER_ERROR, True, False), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_error_of_the_package_does_not_end_with_the_exit_code_that_promises_a_record(tmp_path: Path) -> None:
    program = (
        "import runpy, bench.attempt\n"
        "def fail(attempt): raise RuntimeError('an internal error')\n"
        "bench.attempt.Attempt.run = fail\n"
        "runpy.run_module('bench', run_name='__main__')"
    )
    order = Order(cell=make_cell(), run_id="r", repeat=1, attempt="a", store_url=f"file://{tmp_path}/results")
    variables = {**os.environ, **order.to_variables(), "PYTHONPATH": str(SOURCES)}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (EXIT_INTERNAL_ERROR, "RuntimeError: an internal error")


@pytest.mark.parametrize("url", ["http://a b", "http://[::1", "", "x", "http://1.2.3", "http://xn--"])
@pytest.mark.parametrize("name", [*ACCOUNT_FILES, ACCOUNT_KEY])
def test_a_service_account_whose_server_can_be_none_is_refused_by_name(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    account = tmp_path / "account.json"
    account.write_text(json.dumps({"gcs_base_url": url, "disable_oauth": True, "private_key": "hunter2"}))
    monkeypatch.setenv(name, account.read_text() if name == ACCOUNT_KEY else str(account))
    with pytest.raises(StoreError, match=f"gcs_base_url in .*{name}") as caught:
        Store.open("gs://bkt")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ACCOUNT_FILES)
def test_a_pipe_in_the_place_of_a_service_account_is_refused_and_not_waited_for(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv(name, str(tmp_path / "pipe"))
    with pytest.raises(StoreError, match=f"{name}: .*/pipe: "):
        Store.open("gs://bkt")

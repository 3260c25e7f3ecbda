"""Pages of a listing: keys as they were written, whatever characters they have, and no page that S3 does not send."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler

import pytest

from bench.store import Store, StoreError, StoreUnreachable
from bench.store.s3_pages import MAX_MARKS, ForeignPageError, UnfinishedPageError, parse_page
from lying_s3_server import make_liar
from store_calls import list_calls

OBJECT = "<Contents><Key>{0}</Key><LastModified>{1}</LastModified><ETag>&quot;1&quot;</ETag><Size>{2}</Size></Contents>"
TIME = "2026-11-22T10:00:00.000Z"
UNTIMELY = (
    "",
    "yesterday",
    "Wed, 25 Nov 2026 23:00:00 GMT",
    "99999-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "0001-01-01T00:00:00Z",
    "1970-01-01T00:00:00.000Z",
)
"""What is no time, and what servers write where they know none."""


def make_page(*parts: str) -> bytes:
    return f"<ListBucketResult>{''.join(parts)}</ListBucketResult>".encode()


@pytest.mark.parametrize(
    ("encoding", "written", "key"),
    [
        ("<EncodingType>url</EncodingType>", "a%0Ab/c+d%2Be%C3%A9", "a\nb/c d+eé"),
        ("", "a%0Ab/c+d", "a%0Ab/c+d"),
        ("", "a&lt;&#x41;", "a<A"),
    ],
)
def test_a_key_is_what_was_written(encoding: str, written: str, key: str) -> None:
    page = parse_page(make_page(encoding, OBJECT.format(written, TIME, 7)))
    assert page.entries == [(key, 7, '"1"', datetime(2026, 11, 22, 10, tzinfo=UTC))]


@pytest.mark.parametrize("size", ["", "x", "-1", "1.5", "9" * 5000, "²"])
def test_a_size_that_is_none_is_not_known(size: str) -> None:
    assert parse_page(make_page(OBJECT.format("a", TIME, size))).entries[0].num_bytes is None


@pytest.mark.parametrize("time", UNTIMELY)
def test_a_time_that_is_none_is_not_known(time: str) -> None:
    assert parse_page(make_page(OBJECT.format("a", time, 1))).entries[0].modified_at is None


def test_a_time_of_another_zone_is_the_same_instant() -> None:
    found = parse_page(make_page(OBJECT.format("a", "2026-11-22T10:00:00+02:00", 1))).entries[0].modified_at
    assert found == datetime(2026, 11, 22, 10, tzinfo=timezone(timedelta(hours=2)))


def test_the_next_page_is_asked_for_only_where_there_is_one() -> None:
    token = "<NextContinuationToken>t</NextContinuationToken>"
    assert parse_page(make_page("<IsTruncated>true</IsTruncated>", token)).next_token == "t"
    assert parse_page(make_page("<IsTruncated>false</IsTruncated>", token)).next_token == ""
    assert parse_page(make_page(token)).next_token == "t"
    assert parse_page(make_page()).next_token == ""


@pytest.mark.parametrize("truncated", ["true", "True", " true ", "1"])
@pytest.mark.parametrize("token", ["", "<NextContinuationToken/>", "<NextMarker>a</NextMarker>"])
def test_a_page_that_says_more_follows_and_not_how_is_refused(truncated: str, token: str) -> None:
    with pytest.raises(UnfinishedPageError):
        parse_page(make_page(f"<IsTruncated>{truncated}</IsTruncated>", token))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"<Error><Code>AccessDenied</Code></Error>",
        b"<ListBucketResult><Contents>",
        b'<?xml version="1.0" encoding="no-such-code"?><ListBucketResult/>',
        "<ListBucketResult/>".encode("utf-16"),
        b'<!DOCTYPE a [<!ENTITY a "b">]><ListBucketResult/>',
        b"<ListBucketResult>" + b"<a/>" * (MAX_MARKS + 1) + b"</ListBucketResult>",
        b"<ListBucketResult " + b" ".join(b"a%d='1'" % number for number in range(MAX_MARKS + 1)) + b"/>",
    ],
    ids=["nothing", "json", "error", "cut", "unknown-code", "utf-16", "entities", "many-tags", "many-attributes"],
)
def test_what_is_no_page_is_refused(body: bytes) -> None:
    with pytest.raises(ForeignPageError):
        parse_page(body)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch, run_server: Callable[[type[BaseHTTPRequestHandler]], str]) -> list[str]:
    """Lead all requests to a proxy that answers them by itself; return the first lines and headers of what it gets."""
    seen: list[str] = []
    place = run_server(make_liar("huge-entries", seen=seen)).removeprefix("http://")
    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://user:p%40ss@{place}")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://absent.invalid:9000")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    return seen


def test_objects_and_listings_go_through_the_proxy_of_the_environment(proxy: list[str]) -> None:
    store = Store.open("s3://b")
    assert store.get("runs/r1/run.json") != b""
    assert proxy.pop().startswith("GET http://absent.invalid:9000/b/runs/r1/run.json ")
    assert len(list(Store.open("s3://b").list_objects("runs"))) == 1000
    assert proxy[0].startswith("GET http://absent.invalid:9000/b?")
    assert "Basic dXNlcjpwQHNz" in proxy[0]


def test_objects_and_listings_heed_the_same_exceptions(
    proxy: list[str], run_server: Callable[[type[BaseHTTPRequestHandler]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store library took 127.0.0.0/8 as an exception, and `*` and ports not; the client of listings the other."""
    asked: list[str] = []
    place = run_server(make_liar("huge-entries", seen=asked))
    monkeypatch.setenv("AWS_ENDPOINT_URL", place)
    for listed in ("127.0.0.0/8", "*", place.removeprefix("http://")):
        monkeypatch.setenv("NO_PROXY", listed)
        store = Store.open("s3://b")
        store.get("runs/r1/run.json")
        assert len(list(store.list_objects("runs"))) == 1000
    assert (len(asked), proxy) == (6, [])


@pytest.mark.parametrize("url", ["s3://b", "gs://b", "az://b"])
def test_a_variable_that_names_no_proxy_is_an_error_of_the_user_without_the_password(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://user:hunter2/x@127.0.0.1:3128")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://absent.invalid")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with pytest.raises(StoreError, match=f"^store {url}: https_proxy is no URL of a proxy") as caught:
        Store.open(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.usefixtures("few_retries")
def test_a_proxy_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, proxy: list[str]) -> None:
    monkeypatch.setenv("http_proxy", "http://user:hunter2@127.0.0.1:1")
    for call in list_calls(Store.open("s3://b")):
        with pytest.raises(
            StoreUnreachable, match=r"asked by the proxy 127\.0\.0\.1:1 \(http_proxy\), cannot be"
        ) as caught:
            call()
        assert "hunter2" not in str(caught.value)

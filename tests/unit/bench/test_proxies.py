"""Proxies: which one a request takes, and that what names a wrong one is named, without the password."""

import pytest

from bench.proxies import find_proxy, parse_proxy

PROXY = {"HTTP_PROXY": "http://proxy:3128"}


@pytest.mark.parametrize(
    ("variables", "url", "found"),
    [
        (PROXY, "http://s3.example", "http://proxy:3128"),
        (PROXY, "https://s3.example", None),
        ({"ALL_PROXY": "proxy"}, "https://s3.example", "http://proxy:80"),
        (PROXY | {"http_proxy": "10.0.0.1:1/"}, "http://s3.example", "http://10.0.0.1:1"),
        (PROXY | {"http_proxy": ""}, "http://s3.example", None),
        (PROXY | {"REQUEST_METHOD": "GET"}, "http://s3.example", None),
        ({"HTTPS_PROXY": "http://[::1]:8080"}, "https://s3.example", "http://[::1]:8080"),
    ],
)
def test_the_proxy_is_that_of_the_scheme(variables: dict[str, str], url: str, found: str | None) -> None:
    proxy = find_proxy(url, variables)
    assert (proxy and proxy.plain_url) == found


@pytest.mark.parametrize(
    ("listed", "url"),
    [
        ("*", "http://s3.example"),
        ("a, s3.example", "http://S3.example:9000"),
        (".example", "http://s3.example"),
        ("s3.example:9000", "http://s3.example:9000"),
        ("127.0.0.0/8", "http://127.1.2.3:9000"),
        ("fd00::/8", "http://[fd00::7]:9000"),
        ("[::1]:9000", "http://[::1]:9000"),
    ],
)
def test_what_no_proxy_names_is_asked_directly(listed: str, url: str) -> None:
    assert find_proxy(url, PROXY | {"NO_PROXY": listed}) is None
    assert find_proxy(url, PROXY | {"no_proxy": listed, "NO_PROXY": "other"}) is None


@pytest.mark.parametrize("listed", ["", "xample", "3.example", "s3.example:1", "127.0.0.0/8", "example.s3"])
def test_what_no_proxy_does_not_name_is_asked_by_the_proxy(listed: str) -> None:
    assert find_proxy("http://s3.example:9000", PROXY | {"NO_PROXY": listed}) is not None


@pytest.mark.parametrize(
    "value",
    [
        "http://user:hunter2@host:notaport",
        "http://host:99999",
        "socks5://user:hunter2@host",
        "https://user:hunter2@host",
    ],
)
def test_a_variable_that_names_no_proxy_is_named_and_not_shown(value: str) -> None:
    with pytest.raises(ValueError, match="^http_proxy .*expected http://HOST:PORT|^http_proxy .* port 0") as caught:
        find_proxy("http://s3.example", {"http_proxy": value})
    assert "hunter2" not in str(caught.value)


def test_user_and_password_are_read_as_they_were_meant() -> None:
    proxy = parse_proxy("http://us%40er:p%2Fw@[::1]", "x")
    assert proxy.headers == {"Proxy-Authorization": "Basic dXNAZXI6cC93"}  # base64 of us@er:p/w
    assert proxy.url == "http://us%40er:p%2Fw@[::1]:80"
    assert "p/w" not in f"{proxy!r} {proxy}"

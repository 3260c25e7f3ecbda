"""Every place that asks a server says what becomes of a redirect, how much of an answer is read, and for how long.

A place that is not in CLIENTS fails the first test: find out its three rules, and write them down.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("runner", "collector", "benchmatrix", "images/bench/src/bench")
OPENERS = frozenset(
    {
        *("urlopen", "build_opener", "urlretrieve", "HTTPConnection", "HTTPSConnection", "create_connection"),
        *("PoolManager", "ProxyManager", "connection_from_url", "ApiClient", "new_client_from_config"),
        *("S3Store", "GCSStore", "AzureStore", "HTTPStore", "from_url", "client", "resource"),
    }
)
"""Functions that make what sends requests."""
MODULES = frozenset({"requests", "httpx", "aiohttp", "ftplib", "smtplib", "xmlrpc", "websockets"})
"""Libraries that nothing here uses: to import one is a client."""


@dataclass(frozen=True)
class Rule:
    """What a client does with an answer that leads elsewhere, has no end, or never comes."""

    redirects: str
    body: str
    time: str


STORE_TIME = "30 s of each request, RETRY_SECONDS or PUT_RETRY_SECONDS of all tries; a listing LIST_PATIENCE_SECONDS"
CLIENTS = {
    ("collector/forecast/source_files.py", "build_opener"): Rule(
        "to https, or from http to http (`_WebRedirect`); no credentials are sent",
        "MAX_BYTES, and four times that of memory (`run_bounded`)",
        "TIMEOUT_SECONDS of silence, LIMIT_SECONDS in all",
    ),
    ("runner/nights/webhooks.py", "build_opener"): Rule(
        "refused (`_NoRedirect`): the URL is a secret, and a redirected POST becomes a GET",
        "one byte is read",
        "TIMEOUT_SECONDS of silence, ANSWER_SECONDS in all",
    ),
    ("runner/kubernetes/login.py", "ApiClient"): Rule(
        "not followed: `retries=False` of `runner.kubernetes.connection`; the answer is none that can be decoded",
        "MAX_ANSWER_BYTES, MAX_LINE_BYTES of a watch's line, ANSWER_AMOUNTS of values; packed ones are refused",
        "CONNECT_SECONDS and a read timeout with each request",
    ),
    ("images/bench/src/bench/store/s3_requests.py", "HTTPConnection"): Rule(
        "refused (ELSEWHERE)", "MAX_PAGE_BYTES", "CONNECT_SECONDS, SILENCE_SECONDS, LIST_PATIENCE_SECONDS in all"
    ),
    ("images/bench/src/bench/store/s3_requests.py", "HTTPSConnection"): Rule(
        "refused (ELSEWHERE)", "MAX_PAGE_BYTES", "CONNECT_SECONDS, SILENCE_SECONDS, LIST_PATIENCE_SECONDS in all"
    ),
    ("images/bench/src/bench/store/backend.py", "partial"): Rule(
        "refused to other hosts (`lead_requests`), unless the environment names a proxy for the server",
        "objects: `find_limit`; what a server says of an error has no limit (docs/threat-model.md)",
        STORE_TIME,
    ),
    ("images/bench/src/bench/store/backend.py", "from_url"): Rule(
        "followed, without the Authorization header, which is all that gs:// and az:// send of credentials",
        "objects: `find_limit`; a listing by MAX_LISTING_BYTES of memory",
        STORE_TIME,
    ),
    ("images/bench/src/bench/store/backend.py", "client"): Rule("asked nothing", "none", "none"),
    ("images/bench/src/bench/store/settings.py", "HTTPStore"): Rule("asked nothing: it reads a URL", "none", "none"),
}
"""The client that a place makes, and its rules. `partial` in the backend is that of S3Store."""


def list_clients() -> Iterator[tuple[str, str]]:
    """Yield the module and the function of each call that makes a client."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            for node in ast.walk(ast.parse(path.read_text())):
                if found := find_client(node):
                    yield name, found


def find_client(node: ast.AST) -> str | None:
    """Return the function that makes a client, itself or as the first argument of `partial`, or the library."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        return next((name for name in names if name.partition(".")[0] in MODULES), None)
    return find_called(node) if isinstance(node, ast.Call) else None


def find_called(call: ast.Call) -> str | None:
    called = ast.unparse(call.func).rpartition(".")[2]
    if called in OPENERS:
        return called
    is_deferred = called == "partial" and call.args and ast.unparse(call.args[0]).rpartition(".")[2] in OPENERS
    return called if is_deferred else None


def test_every_client_has_its_rules() -> None:
    assert set(list_clients()) == set(CLIENTS)


def test_a_new_client_would_be_found() -> None:
    lines = [
        "import requests",
        "from httpx import get",
        "urllib.request.urlopen('x')",
        "functools.partial(obstore.store.GCSStore, 'b')",
        "http.client.HTTPSConnection('h')",
        "len('x')",
    ]
    found = [next(filter(None, map(find_client, ast.walk(ast.parse(line)))), None) for line in lines]
    assert found == ["requests", "httpx", "urlopen", "partial", "HTTPSConnection", None]


def test_no_rule_is_empty() -> None:
    assert [key for key, rule in CLIENTS.items() if not (rule.redirects and rule.body and rule.time)] == []

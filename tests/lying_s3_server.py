"""An S3 server that lies: its listings never end, its objects have more bytes than the world."""

import itertools
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Literal
from urllib.parse import urlsplit

Lie = Literal[
    "same-page",
    "no-token",
    "no-keys",
    "new-tokens",
    "huge-object",
    "huge-page",
    "endless-page",
    "many-entries",
    "entities",
    "huge-entries",
    "odd-keys",
    "web-page",
    "elsewhere",
]
"""What it does: gives one page of a listing again and again, one that says more follows and not how, empty pages
without end, the same with another token for each, objects of 2^40 bytes, a page that is said to have 2^40 bytes, one
that does not end, too many entries, one that defines entities, one whose entries have 2^63 bytes each, one with keys
that no file could have, a page for browsers, or another address."""
HUGE_BYTES = 2**40
PIECE = b"100000\r\n" + bytes(2**20) + b"\r\n"
"""Of a body in chunks."""
ENTRY = (
    "<Contents><Key>runs/r1/results/c-00000000/{0}-a.json</Key><LastModified>2026-11-22T10:00:00.000Z</LastModified>"
    "<ETag>&quot;1&quot;</ETag><Size>2</Size><StorageClass>STANDARD</StorageClass></Contents>"
)


def make_witness(seen: list[str]) -> type[BaseHTTPRequestHandler]:
    """Return how a server answers with nothing that notes each request with its headers in `seen`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802  (http.server looks for it)
            seen.append(f"{self.command} {self.path} {dict(self.headers)}")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_POST = do_PUT = do_DELETE = do_CONNECT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def make_liar(
    lie: Lie, elsewhere: str = "http://localhost:9", seen: list[str] | None = None
) -> type[BaseHTTPRequestHandler]:
    """Return how a server answers that tells this lie, and notes each request with its headers in `seen`."""
    numbers = itertools.count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # noqa: N802  (http.server looks for it)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if seen is not None:
                seen.append(f"{self.command} {self.path} {dict(self.headers)}")
            is_listing = "list-type" in urlsplit(self.path).query
            is_huge = lie == ("huge-page" if is_listing else "huge-object")
            is_endless = lie == "endless-page"
            body = b"" if is_huge or is_endless else _make_page(lie, next(numbers)).encode()
            self.close_connection = is_huge or is_endless
            self.send_response(307 if lie == "elsewhere" else 200)
            self.send_header("Location", elsewhere + self.path)
            self.send_header("Content-Type", "application/xml")
            if is_endless:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Content-Length", str(HUGE_BYTES if is_huge else len(body)))
            self.send_header("Last-Modified", "Sun, 22 Nov 2026 10:00:00 GMT")
            self.send_header("ETag", '"1"')
            self.end_headers()
            with suppress(OSError):  # nobody reads any more
                self.wfile.write(body)
                while is_endless:
                    self.wfile.write(PIECE)

        do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _make_page(lie: Lie, number: int = 0) -> str:
    """Return a page of a listing; after the first three lies there is always another one."""
    if lie == "elsewhere":
        return ""
    if lie == "web-page":
        return "<html><body>log in</body></html>"
    if lie == "odd-keys":
        return _make_odd_page()
    if lie == "entities":
        return f'<!DOCTYPE a [<!ENTITY a "{"x" * 1000}">]><ListBucketResult><Name>&a;</Name></ListBucketResult>'
    num_entries = {"no-keys": 0, "new-tokens": 0, "many-entries": 10_001}.get(lie, 1000)
    entries = "".join(ENTRY.format(number) for number in range(1, num_entries + 1))
    if lie == "huge-entries":
        page = _make_page("same-page").replace("<Size>2<", f"<Size>{2**63}<")
        return page.replace("<IsTruncated>true<", "<IsTruncated>false<")
    if lie == "no-token":
        return _make_page("same-page").replace("NextContinuationToken", "NextMarker")
    token = f"again{number}" if lie == "new-tokens" else "again"
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        "<Name>b</Name><Prefix>runs</Prefix><KeyCount>1000</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>true"
        f"</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>{entries}</ListBucketResult>"
    )


def _make_odd_page() -> str:
    """Return a page of a listing: two good keys and two folders, among keys that make the store library refuse it."""
    good = ENTRY.format(1) + ENTRY.format(2)
    odd = "".join(ENTRY.replace("/c-00000000/", part).format(3) for part in ("//", "/../", "/a&#10;b/", "/a%7F/"))
    folders = ("runs/r1/", "runs//", "runs/../", "runs/a&#10;b/", "runs/r2/")
    prefixes = "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in folders)
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>b</Name><KeyCount>6</KeyCount><IsTruncated>false</IsTruncated>{odd}{good}{prefixes}</ListBucketResult>"
    )

"""An S3 server that lies: its listings never end, its objects have more bytes than the world."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

Lie = Literal["same-page", "no-keys", "huge-object", "huge-entries", "odd-keys", "web-page", "elsewhere"]
"""What it does: gives one page of a listing again and again, empty pages without end, objects of 2^40 bytes, a page
whose entries have 2^63 bytes each, one with keys that no file could have, a page for browsers, or another address."""
HUGE_BYTES = 2**40
ENTRY = (
    "<Contents><Key>runs/r1/results/c-00000000/{0}-a.json</Key><LastModified>2026-11-22T10:00:00.000Z</LastModified>"
    "<ETag>&quot;1&quot;</ETag><Size>2</Size><StorageClass>STANDARD</StorageClass></Contents>"
)


class LyingServer(ThreadingHTTPServer):
    """Serves on a free port of the loopback device until `stop`."""

    daemon_threads = True
    is_stopped = False

    def stop(self) -> None:
        """Serve no new connection, and refuse what is still asked for on those there are: listings would go on."""
        self.is_stopped = True
        self.shutdown()
        self.server_close()


def serve_lies(lie: Lie) -> LyingServer:
    """Start a server that tells this lie; the caller stops it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # noqa: N802  (http.server looks for it)
            if server.is_stopped:
                self.close_connection = True
                self.send_error(403)
                return
            is_huge = lie == "huge-object" and "list-type" not in urlsplit(self.path).query
            body = b"" if is_huge else _make_page(lie).encode()
            self.close_connection = is_huge
            self.send_response(307 if lie == "elsewhere" else 200)
            self.send_header("Location", f"http://localhost:9{self.path}")
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(HUGE_BYTES if is_huge else len(body)))
            self.send_header("Last-Modified", "Sun, 22 Nov 2026 10:00:00 GMT")
            self.send_header("ETag", '"1"')
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = LyingServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _make_page(lie: Lie) -> str:
    """Return a page of a listing; after the first two lies there is always another one."""
    if lie == "elsewhere":
        return ""
    if lie == "web-page":
        return "<html><body>log in</body></html>"
    if lie == "odd-keys":
        return _make_odd_page()
    entries = "" if lie == "no-keys" else "".join(ENTRY.format(number) for number in range(1, 1001))
    if lie == "huge-entries":
        page = _make_page("same-page").replace("<Size>2<", f"<Size>{2**63}<")
        return page.replace("<NextContinuationToken>again</NextContinuationToken>", "")
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        "<Name>b</Name><Prefix>runs</Prefix><KeyCount>1000</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>true"
        f"</IsTruncated><NextContinuationToken>again</NextContinuationToken>{entries}</ListBucketResult>"
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

"""An S3 server and an API server of Kubernetes that say what a case has them say, and else the truth."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

BUCKET = "fuzzed"


Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""


class LyingServer:
    """A server on the loopback device; `answer` returns status, headers and body of a request."""

    def __init__(self) -> None:
        self.says: Any = {}
        """What the case has it say."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                status, headers, answer = server.answer(self.command, self.path, body)
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(answer))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer)

            do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = do_HEAD = do  # noqa: N815  (http.server looks for these)

            def log_message(self, *_: object) -> None:
                pass

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        """Return status, headers and body of the answer to a request."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Pass by a client that was ended."""


def _read(tree: Any, *keys: str) -> Any:
    """Return what a case says under these keys; None where it says nothing there."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _read_status(value: Any) -> int:
    is_status = isinstance(value, int) and 200 <= value <= 599
    return value if is_status else 200


def _make_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


TRUE_ENTRY = {"LastModified": "2026-11-22T10:00:00.000Z", "ETag": "&quot;1&quot;", "StorageClass": "STANDARD"}
LISTING = {"KeyCount": 1, "MaxKeys": 1000, "IsTruncated": "false"}
S3_TRUTH = {
    "statuses": {"list": 200, "get": 200, "put": 200, "head": 200, "delete": 204},
    "entry": TRUE_ENTRY | {"Size": None},
    "listing": LISTING,
    "root": "ListBucketResult",
    "more": [],
    "headers": {"ETag": '"1"', "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT", "Content-Type": "application/json"},
    "body": None,
}
"""What a case of the S3 server can change; null: what is true. `more`: keys that are listed besides, `body`: that of
every object."""


class S3Liar(LyingServer):
    """Serves the files of a folder as the objects of a bucket; what is put there is kept in memory."""

    folder = Path()

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, bytes] = {}

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        key = unquote(parts.path).removeprefix(f"/{BUCKET}").strip("/")
        if "list-type" in query:
            page = self._list(query.get("prefix", [""])[0], query.get("delimiter", [""])[0])
            return self._read_status("list"), {"Content-Type": "application/xml"}, page
        status = self._read_status(verb.lower())
        if verb == "PUT":
            self.kept[key] = body
        if verb not in ("GET", "HEAD"):
            return status, {"ETag": '"1"'}, b""
        found = self._read(key)
        if found is None:
            return 404, {}, b""
        said = _read(self.says, "body")
        content = found if said is None else _make_text(said).encode(errors="replace")
        headers = _read(self.says, "headers")
        named = headers if isinstance(headers, dict) else {}
        return status, {name: _clean(value) for name, value in named.items() if _is_name(name)}, content

    def _read(self, key: str) -> bytes | None:
        path = self.folder / key
        return self.kept.get(key) or (path.read_bytes() if path.is_file() else None)

    def _read_status(self, verb: str) -> int:
        return _read_status(_read(self.says, "statuses", verb))

    def _list(self, prefix: str, delimiter: str) -> bytes:
        files = [path.relative_to(self.folder).as_posix() for path in sorted(self.folder.rglob("*")) if path.is_file()]
        more = _read(self.says, "more")
        keys = [
            key
            for key in sorted({*files, *self.kept}) + (more if isinstance(more, list) else [])
            if _make_text(key).startswith(prefix)
        ]
        inner, folders = [], set()
        for key in map(_make_text, keys):
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                inner.append(key)
        entries = "".join(f"<Contents><Key>{key}</Key>{self._make_entry(key)}</Contents>" for key in inner)
        shared = "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in sorted(folders))
        listing = _read(self.says, "listing")
        root = _make_text(_read(self.says, "root"))
        head = f"<Name>{BUCKET}</Name><Prefix>{prefix}</Prefix>{_make_elements(listing)}"
        return f'<?xml version="1.0"?><{root}>{head}{entries}{shared}</{root}>'.encode(errors="replace")

    def _make_entry(self, key: str) -> str:
        said = _read(self.says, "entry")
        if not isinstance(said, dict):
            return _make_text(said)
        size = len(self._read(key) or b"{}")
        return _make_elements({name: size if value is None else value for name, value in said.items()})


def _make_elements(tree: Any) -> str:
    if not isinstance(tree, dict):
        return _make_text(tree)
    return "".join(f"<{name}>{_make_text(value)}</{name}>" for name, value in tree.items())


def _is_name(name: str) -> bool:
    return bool(name) and name.isascii() and name.replace("-", "").isalnum()


def _clean(value: Any) -> str:
    """Return a header's value as http.server can send it."""
    return _make_text(value).encode("latin-1", "replace").decode("latin-1").replace("\n", " ").replace("\r", " ")


class ApiLiar(LyingServer):
    """Serves what a case says of each kind of object: `jobs`, `pods`, ...; a text is sent as it is."""

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        kind, name = _find_kind(urlsplit(path).path)
        status = _read_status(_read(self.says, "statuses", kind))
        said = _read(self.says, kind)
        if verb == "GET" and "watch=" in path:
            return status, {}, b""
        if verb == "DELETE":
            return status, {}, b'{"kind": "Status", "status": "Success"}'
        if verb != "GET":
            return status, {}, (body if said is None or name or _is_list(said) else _dump(said))
        if said is None:
            return 404, {}, b'{"kind": "Status", "reason": "NotFound", "code": 404, "message": "not found"}'
        if name and _is_list(said):
            items = said["items"]
            return status, {}, _dump(items[0] if isinstance(items, list) and items else items)
        return status, {}, _dump(said)


def _find_kind(path: str) -> tuple[str, str]:
    """Return the kind of a path and the name in it: of `/api/v1/namespaces/x/pods/y`, `pods` and `y`."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else parts
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    if len(rest) > 2:  # a log, a scale
        return rest[2], ""
    return (rest[0] if rest else parts[-1]), (rest[1] if len(rest) > 1 else "")


def _is_list(said: Any) -> bool:
    return isinstance(said, dict) and "items" in said


def _dump(said: Any) -> bytes:
    return said.encode(errors="replace") if isinstance(said, str) else json.dumps(said).encode()

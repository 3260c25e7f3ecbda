"""A server on the loopback device whose answers a test chooses."""

import ssl
import threading
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""


class LyingServer:
    """A server on the loopback device that gives the answers of a list, and the last one again and again."""

    headers: Message
    """Of the last request."""

    def __init__(self, host: str = "127.0.0.1", certificate: Path | None = None) -> None:
        server = self
        self.answers: list[Answer] = [(200, {}, b"{}")]
        self.paths: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                server.headers = self.headers
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

        self._server = _QuietServer((host, 0), Handler)
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'http' if certificate is None else 'https'}://{host}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        """Return status, headers and body of the answer to a request."""
        self.paths.append(path)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def stop(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Pass by a client that was ended."""

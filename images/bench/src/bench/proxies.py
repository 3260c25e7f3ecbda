"""Finds the proxy of a request, for all clients by the same rules, and checks it before anything is sent there.

The clients read the variables each in its own way: of one that is wrong some fail with its text, in which the password
stands, and some ask the server itself; NO_PROXY is another list for each. So the proxy is found here and given to them.
"""

import ipaddress
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from bench.redaction import remember_secret

DEFAULT_PORTS = {"http": 80, "https": 443}
HOST = r"[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.%]+[A-Za-z0-9_.-]*\]"
"""A name, an address, or an address of IPv6 in brackets."""
MAX_PORT = 65_535


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """A server that passes requests on. `user` and `password` are empty where it asks for none."""

    scheme: str
    host: str
    """Without the brackets of IPv6."""
    port: int
    source: str
    """What names it: a variable, or a key of a file."""
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def place(self) -> str:
        """Host and port, as they stand in a URL."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL with user and password, each written so that every client reads the same."""
        pair = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.user else ""
        return f"{self.scheme}://{pair}{self.place}"

    @property
    def plain_url(self) -> str:
        """The URL without user and password."""
        return f"{self.scheme}://{self.place}"

    @property
    def headers(self) -> dict[str, str]:
        """What the proxy is told to let requests pass."""
        if not self.user:
            return {}
        return {"Proxy-Authorization": f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"}

    def __str__(self) -> str:
        return f"the proxy {self.place} ({self.source})"


def find_proxy(url: str, variables: Mapping[str, str], *, schemes: tuple[str, ...] = ("http",)) -> Proxy | None:
    """Return the proxy that variables such as HTTPS_PROXY name for a URL; None where its server is asked directly.

    `schemes`: of the proxies that the client can ask. ValueError, which names the variable and not its value, where
    that is no URL of such a proxy.
    """
    parts = urlsplit(url)
    names = [f"{parts.scheme.upper()}_PROXY", "ALL_PROXY"]
    if "REQUEST_METHOD" in variables:  # of a CGI program, HTTP_PROXY may be a header that a client sent
        names = [name for name in names if name != "HTTP_PROXY"]
    if _is_excepted(parts.hostname or "", parts.port, _read_variable(variables, "NO_PROXY")[1]):
        return None
    for name in names:
        source, value = _read_variable(variables, name)
        if value:
            return parse_proxy(value if "//" in value else f"http://{value}", source, schemes=schemes)
    return None


def parse_proxy(value: object, source: str, *, schemes: tuple[str, ...] = ("http",)) -> Proxy:
    """Return the proxy of a URL; ValueError, which names its `source` and does not show it, where it is none."""
    expected = " or ".join(f"{scheme}://HOST:PORT" for scheme in schemes)
    hint = "in a user or a password, characters such as / and @ are written as %2F and %40"
    problem = ValueError(f"{source} is no URL of a proxy; expected {expected} ({hint})")
    if not isinstance(value, str) or not re.fullmatch(r"[!-~]+", value):
        raise problem
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise problem from None
    server = re.sub(r":\d*$", "", parts.netloc.rpartition("@")[2])
    if not parts.scheme or not re.fullmatch(HOST, server) or parts.path.strip("/") or parts.query or parts.fragment:
        raise problem
    if parts.scheme not in schemes:
        raise ValueError(
            f"{source} names a proxy of '{parts.scheme[:20]}:', which is not supported; expected {expected}"
        )
    if port == 0:
        raise ValueError(f"{source} names a proxy at the port 0; ports are 1 to {MAX_PORT}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    for secret in (password, parts.password):
        remember_secret(secret)
    return Proxy(
        scheme=parts.scheme,
        host=server.strip("[]"),
        port=port or DEFAULT_PORTS.get(parts.scheme, DEFAULT_PORTS["http"]),
        source=source,
        user=user,
        password=password,
    )


def _read_variable(variables: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return a variable as it is called and its value: in small letters, as most programs want it, it comes first."""
    for called in (name.lower(), name):
        if called in variables:
            return called, variables[called].strip()
    return name, ""


def _is_excepted(host: str, port: int | None, listed: str) -> bool:
    """Return whether a host is among those of NO_PROXY: names with all below them, addresses, networks, or `*`."""
    host = host.lower().rstrip(".")
    for entry in filter(None, re.split(r"[,\s]+", listed.lower())):
        name, colon, digits = entry.rpartition(":")
        if colon and digits.isdigit() and (":" not in name or name.startswith("[")):
            if int(digits[:10]) != port:
                continue
            entry = name
        name = entry.removeprefix("*").strip(".[]")
        if entry == "*" or (name and (host == name or host.endswith(f".{name}"))) or _is_within(host, name):
            return True
    return False


def _is_within(host: str, network: str) -> bool:
    """Return whether a host is an address within a network, such as 10.0.0.0/8."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False

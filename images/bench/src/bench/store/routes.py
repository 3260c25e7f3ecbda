"""Decides by which proxy the requests of a store go, and keeps the store library from going elsewhere."""

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bench.proxies import Proxy, find_proxy
from bench.store.store_errors import NOWHERE, StoreError

if TYPE_CHECKING:
    from obstore.store import ClientConfig


def find_store_proxy(url: str, endpoint: str, *, schemes: tuple[str, ...] = ("http",)) -> Proxy | None:
    """Return the proxy that the environment names for a server; StoreError, which names the variable, for a wrong one.

    `schemes`: to one of https, TLS is spoken, which what asks S3 for listings cannot.
    """
    try:
        return find_proxy(endpoint, os.environ, schemes=schemes)
    except ValueError as error:
        raise StoreError(f"store {url}: {error}") from None


def lead_requests(endpoint: str, proxy: Proxy | None) -> "ClientConfig":
    """Return the options that lead requests of the store library to the proxy, or else to no other host.

    It has none against redirects to another host: so all other hosts get a proxy that is not there. Where there is a
    proxy for the server, redirects are followed through it.
    """
    if proxy is not None:
        return {"proxy_url": proxy.url}
    host = str(urlsplit(endpoint).hostname)
    if host.endswith("."):  # a name that the list of exceptions cannot have
        return {}
    return {"proxy_url": NOWHERE, "proxy_excludes": host}

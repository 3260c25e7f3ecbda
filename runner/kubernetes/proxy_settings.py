"""Leads a client of the API server to its proxy: the one that the kubeconfig or else the environment names."""

import os

import kubernetes.client

from bench.proxies import Proxy, find_proxy, parse_proxy

SCHEMES = ("http", "https")
"""Of proxies that urllib3 can ask; of SOCKS it takes a package that is not installed."""


def lead_to_proxy(configuration: kubernetes.client.Configuration, cluster: str) -> None:
    """Set in a configuration, which was read from a kubeconfig, by which proxy requests go.

    ValueError, which does not show it, where its URL is none. `cluster`: names of the kubeconfig and of the cluster.
    """
    proxy = _find_proxy(configuration, cluster)
    configuration.proxy = None if proxy is None else proxy.plain_url
    configuration.proxy_headers = None if proxy is None else proxy.headers or None
    configuration.no_proxy = None  # that of the environment was heeded; a kubeconfig has no exceptions


def make_configuration() -> kubernetes.client.Configuration:
    """Return an empty configuration: without the proxy of the environment, which the official client puts in."""
    configuration = kubernetes.client.Configuration()
    configuration.proxy = None
    return configuration


def _find_proxy(configuration: kubernetes.client.Configuration, cluster: str) -> Proxy | None:
    if configuration.proxy is None or configuration.proxy == "":  # of no kubeconfig
        return find_proxy(configuration.host, os.environ, schemes=SCHEMES)
    return parse_proxy(configuration.proxy, f"{cluster}: proxy-url", schemes=SCHEMES)

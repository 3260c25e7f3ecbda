"""Login to a cluster: the kubeconfig, its contexts, and the credentials.

Errors of the official client and of http.client may quote a token or a password. So their text is passed on only where
it is known to be harmless.
"""

import hashlib
import logging
import os
import re
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import kubernetes.client
import kubernetes.config
import urllib3
import yaml
from kubernetes.config.config_exception import ConfigException

from bench.errors import UserError
from bench.redaction import remember_secret
from runner.profiles import IN_CLUSTER

CURRENT = "current"
NUM_CONNECTIONS = 36
"""That are kept open: for the 24 threads of a Dispatcher, for watches, and for pages of lists that are read ahead."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Login:
    """How one API server is reached, with credentials that may expire."""

    server: str
    pool: urllib3.PoolManager
    headers: dict[str, str] = field(repr=False)
    authorities: tuple[str, ...]
    """The SHA-256 of each certificate that the API server's own is checked by, in hex, sorted.

    By them clusters are told apart that have the same name: every pod may read those of its cluster, and kubeadm, kind,
    k3s and the clouds make new ones for each. While they are replaced, the file has the old ones and the new ones.
    Empty where they are the system's, or nothing is checked."""


def log_in(context: str) -> Login:
    """Log in with the context's credentials. Raise UserError if they or the kubeconfig cannot be used."""
    configuration = kubernetes.client.Configuration(host="")  # else a cluster without a server is this machine
    hint = "`kubectl config get-contexts` lists yours"
    if context == IN_CLUSTER:
        hint = "in-cluster is for a runner in a pod with a service account, where the kubelet gives all of this"
    # Where a program gives no credentials, the client only logs that, to the root, with all that the program printed.
    nowhere = logging.NullHandler()
    logging.getLogger().addHandler(nowhere)
    try:
        if context == IN_CLUSTER:
            kubernetes.config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=find_kubeconfig(), context=context, client_configuration=configuration
            )
        server = urllib3.util.parse_url(configuration.host)
        if server.scheme not in ("http", "https") or not server.host:
            raise _refuse(context, "its cluster has no server such as https://HOST:PORT")
        if server.scheme == "https" and not (configuration.api_key or configuration.cert_file):
            program = "where a program (exec or auth-provider) gives them, call it by hand to see why it gave none"
            raise _refuse(context, f"it has no credentials; {program}")
        if configuration.cert_file:  # at the first request, one that is none would look like a dead server
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            tls.load_cert_chain(configuration.cert_file, configuration.key_file, password=lambda: "")
        _set_proxy(configuration)
        configuration.connection_pool_maxsize, configuration.retries = NUM_CONNECTIONS, False
        configuration.keep_alive = True
        client = kubernetes.client.ApiClient(configuration)
        return Login(
            server=configuration.host,
            pool=client.rest_client.pool_manager,
            headers=_read_authorization(client, context),
            authorities=_list_authorities(configuration),
        )
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever the client meets in the files: its text may show a token)
        raise _refuse(context, f"its login cannot be used: {describe_error(error)}; {hint}") from None
    finally:
        logging.getLogger().removeHandler(nowhere)


def _refuse(context: str, why: str) -> UserError:
    return UserError(f"--on {context}: {name_user(context)}: {why}")


def _set_proxy(configuration: kubernetes.client.Configuration) -> None:
    """Give urllib3, which reads no password out of a proxy's URL, user and password as a header."""
    if configuration.proxy and (pair := urllib3.util.parse_url(configuration.proxy).auth):
        for secret in (pair.partition(":")[2], unquote(pair.partition(":")[2])):
            remember_secret(secret)
        configuration.proxy_headers = urllib3.util.make_headers(proxy_basic_auth=unquote(pair))
        configuration.proxy = urllib3.util.parse_url(configuration.proxy)._replace(auth=None).url


def _read_authorization(client: kubernetes.client.ApiClient, context: str) -> dict[str, str]:
    """Return the header that the client logs in with.

    Without white space around its token: the client leaves the last line break of a `tokenFile`, at which http.client
    would fail with the token in its message.
    """
    headers: dict[str, str] = {}
    client.update_params_for_auth(headers, [], ["BearerToken"], "", "", None)
    for name, value in headers.items():
        scheme, _, token = value.partition(" ")
        headers[name] = f"{scheme} {token.strip()}"
        # What a header can carry, less what no token has: https://datatracker.ietf.org/doc/html/rfc6750#section-2.1
        if not re.fullmatch(r"[!-~]+", token.strip()):
            raise _refuse(context, "its token is empty or has a character that no token has; log in again")
        remember_secret(token.strip())
    return headers


def _list_authorities(configuration: kubernetes.client.Configuration) -> tuple[str, ...]:
    if not (configuration.ssl_ca_cert and configuration.verify_ssl):
        return ()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.load_verify_locations(configuration.ssl_ca_cert)
    return tuple(sorted({hashlib.sha256(data).hexdigest() for data in tls.get_ca_certs(binary_form=True)}))


def find_kubeconfig() -> str:
    """Return the kubeconfig that the official client takes by default; it reads KUBECONFIG only when imported."""
    return os.environ.get("KUBECONFIG", "~/.kube/config")


def list_contexts() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the contexts of the kubeconfig, and the active one. UserError if the file cannot be read."""
    try:
        found = kubernetes.config.list_kube_config_contexts(find_kubeconfig())  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001  (it takes whatever YAML makes of the file)
        raise UserError(f"{find_kubeconfig()}: {describe_error(error)}; set KUBECONFIG") from None
    contexts, active = found
    return contexts, active


def find_context(on: str) -> str:
    """Return the context that `--on` names; `current` is the kubeconfig's own. UserError if there is none."""
    if on == IN_CLUSTER:
        return on
    try:
        contexts, active = list_contexts()
    except UserError as error:
        raise UserError(f"--on {on}: {error}, or leave --on out to run here") from None
    names = [str(context["name"]) for context in contexts]
    if on == CURRENT:
        return str(active["name"])
    if on not in names:
        raise UserError(f"--on {on}: no such context; yours are {', '.join(names)}, and `local` is this machine")
    return on


def name_user(context: str) -> str:
    if context == IN_CLUSTER:
        return "the token of the service account (/var/run/secrets/kubernetes.io/serviceaccount/token)"
    with suppress(Exception):  # it only makes the message better
        found = next(item["context"]["user"] for item in list_contexts()[0] if item["name"] == context)
        return f"{find_kubeconfig()}: user `{found}`"
    return f"{find_kubeconfig()}: the user of context {context}"


def describe_error(error: Exception) -> str:
    """Return the message of an error on one line, as far as it is harmless; of a YAML error, only the line."""
    if isinstance(error, yaml.YAMLError):
        mark = getattr(error, "problem_mark", None)
        return f"{find_kubeconfig()} is no YAML" + (f", see line {mark.line + 1}" if mark else "")
    is_harmless = isinstance(error, ConfigException | OSError | urllib3.exceptions.HTTPError)
    if not is_harmless or isinstance(error, urllib3.exceptions.LocationValueError):  # the latter shows a URL
        return type(error).__name__
    # How the system and OpenSSL begin a message, whose rest is harmless; and a name with whatever stands below it.
    text = re.sub(r"\[(Errno -?\d+|SSL: [A-Z0-9_]+)\] ?", "", " ".join(str(error).split()))
    return re.sub(r"[{\[].*", "(no text)", text) or type(error).__name__

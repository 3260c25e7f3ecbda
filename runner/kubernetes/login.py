"""Login to a cluster: the kubeconfig, its contexts, and the credentials.

Errors of the official client and of http.client may quote a token or a password. So their text is passed on only where
it is known to be harmless.
"""

import logging
import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import BufferingHandler
from typing import Any
from urllib.parse import unquote

import kubernetes.client
import kubernetes.config
import urllib3
import yaml
from kubernetes.config.config_exception import ConfigException

from bench.errors import UserError
from bench.redaction import remember_secret
from runner.cluster_contexts import IN_CLUSTER

CURRENT = "current"
SERVICE_ACCOUNT = "the token of the service account (/var/run/secrets/kubernetes.io/serviceaccount/token)"
IN_CLUSTER_HINT = "in-cluster is for a runner in a pod with a service account, where the kubelet gives all of this"
KUBECONFIG_HINT = "`kubectl config get-contexts` lists yours"


class LoginError(Exception):
    """Credentials cannot be used; the message shows nothing of them."""


def find_kubeconfig() -> str:
    """Return the kubeconfig that the official client takes by default; it reads KUBECONFIG only when imported."""
    return os.environ.get("KUBECONFIG", "~/.kube/config")


def list_contexts() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the contexts of the kubeconfig, and the active one. UserError where it cannot be read."""
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


def log_in(context: str, *, num_connections: int) -> kubernetes.client.ApiClient:
    """Return a client with the context's credentials; raise UserError if they or the kubeconfig cannot be used."""
    configuration = kubernetes.client.Configuration(host="")  # else a cluster without a server is this machine
    place = f"--on {context}: {name_user(context)}"
    hint = IN_CLUSTER_HINT if context == IN_CLUSTER else KUBECONFIG_HINT
    try:
        with _tell_of_plugins(context):
            if context == IN_CLUSTER:
                kubernetes.config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
            else:
                kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]
                    config_file=find_kubeconfig(), context=context, client_configuration=configuration
                )
        server = urllib3.util.parse_url(configuration.host)
        if server.scheme not in ("http", "https") or not server.host:
            raise LoginError(f"{name_user(context)}: its cluster has no server such as https://HOST:PORT")
        _set_proxy(configuration)
        configuration.connection_pool_maxsize, configuration.retries = num_connections, False
        configuration.keep_alive = True
        _check_certificates(configuration)
        client = kubernetes.client.ApiClient(configuration)
        read_authorization(client, context)
    except LoginError as error:
        raise UserError(f"--on {context}: {error}") from None
    except Exception as error:  # noqa: BLE001  (whatever the client meets in the files: its text may show a token)
        raise UserError(f"{place}: its login cannot be used: {describe_error(error)}; {hint}") from None
    return client


def _set_proxy(configuration: kubernetes.client.Configuration) -> None:
    """Give urllib3, which reads no password out of a proxy's URL, user and password as a header."""
    if configuration.proxy and (pair := urllib3.util.parse_url(configuration.proxy).auth):
        for secret in (pair.partition(":")[2], unquote(pair.partition(":")[2])):
            remember_secret(secret)
        configuration.proxy_headers = urllib3.util.make_headers(proxy_basic_auth=unquote(pair))
        configuration.proxy = urllib3.util.parse_url(configuration.proxy)._replace(auth=None).url


def _check_certificates(configuration: kubernetes.client.Configuration) -> None:
    """Raise LoginError for files that OpenSSL cannot use: at the first request it would look like a dead server."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, configuration.key_file, password=lambda: "")
        if configuration.ssl_ca_cert:
            tls.load_verify_locations(configuration.ssl_ca_cert)
    except (OSError, ValueError):
        raise LoginError(
            "client-certificate(-data), client-key(-data) or certificate-authority(-data) cannot be used; expected "
            "certificates and a key in PEM, without a password"
        ) from None


@contextmanager
def _tell_of_plugins(context: str) -> Iterator[None]:
    """Raise LoginError where a program that gives credentials gave none: the official client only logs it.

    It logs, to the root, all that the program printed; that goes nowhere.
    """
    handler = BufferingHandler(capacity=100)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
    complaints = [record.getMessage() for record in handler.buffer if record.levelno >= logging.ERROR]
    if complaints:
        code = re.match(r"exec: process returned (-?[0-9]+)", complaints[0])
        missing = re.fullmatch(r"\[Errno [0-9]+\] ([A-Z][A-Za-z ]+): '([^'\n]{1,255})'", complaints[0])  # of Popen
        how = f"cannot be started: {missing[2]}: {missing[1]}" if missing else "answers with what is no credentials"
        raise LoginError(
            f"{name_user(context)}: the program that gives its credentials (exec or auth-provider) "
            f"{f'ended with exit code {code[1]}' if code else how}; call it by hand to see why"
        )


def read_authorization(client: kubernetes.client.ApiClient, context: str) -> dict[str, str]:
    """Return the header that the client logs in with, renewed where it is old; LoginError where none can be made.

    Without white space around its token: the client leaves the last line break of a `tokenFile`, at which http.client
    would fail with the token in its message.
    """
    headers: dict[str, str] = {}
    try:
        with _tell_of_plugins(context):
            client.update_params_for_auth(headers, [], ["BearerToken"], "", "", None)
    except LoginError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever a token file or a plugin does: its text may show the token)
        message = f"{name_user(context)}: its token cannot be renewed ({describe_error(error)})"
        raise LoginError(message) from None
    for name, value in headers.items():
        scheme, _, token = value.partition(" ")
        headers[name] = f"{scheme} {token.strip()}"
        # What a header can carry, less what no token has: https://datatracker.ietf.org/doc/html/rfc6750#section-2.1
        if not re.fullmatch(r"[!-~]+", token.strip()):
            message = f"{name_user(context)}: its token is empty or has a character that no token has"
            raise LoginError(f"{message}; log in again, or write it again")
        remember_secret(token.strip())
    return headers


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


def name_user(context: str) -> str:
    """Return the names of the kubeconfig and of the user in it that the context uses; in a pod, the account's token."""
    if context == IN_CLUSTER:
        return SERVICE_ACCOUNT
    with suppress(Exception):  # it only makes the message better
        found = next(item["context"]["user"] for item in list_contexts()[0] if item["name"] == context)
        return f"{find_kubeconfig()}: user `{found}`"
    return f"{find_kubeconfig()}: the user of context {context}"

"""Login to a cluster: the kubeconfig, its contexts, and credentials that are checked before they are sent.

Errors of the official client and of http.client may quote a token or a password. So their text is passed on only where
it is known to be harmless.
"""

import hashlib
import re
import ssl
from contextlib import suppress

import kubernetes.client
import kubernetes.config
import yaml
from kubernetes.config.config_exception import ConfigException

from bench.cluster_contexts import IN_CLUSTER
from bench.errors import UserError
from runner.kubernetes.credential_plugins import LoginEndedError, find_limit_seconds, limit_login
from runner.kubernetes.kubeconfig import (
    check_kubeconfig,
    find_kubeconfig,
    find_server_problem,
    list_kubeconfigs,
    read_kubeconfig,
)
from runner.kubernetes.proxy_settings import lead_to_proxy, make_configuration

CURRENT = "current"
SERVICE_ACCOUNT = "the token of the service account (/var/run/secrets/kubernetes.io/serviceaccount/token)"
SERVICE_ADDRESS = "the address of the API server (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT)"
IN_CLUSTER_HINT = "in-cluster is for a runner in a pod with a service account, where the kubelet gives all of this"
KIND_OF_ERROR = re.compile(r"\[(Errno -?\d+|SSL: [A-Z0-9_]+)\] ?")
"""How the system and OpenSSL begin a message, whose rest is harmless."""
# What a header can carry, less what no token has: https://datatracker.ietf.org/doc/html/rfc6750#section-2.1
TOKEN = r"[!-~]+"
TOKEN_KEYS = {"token", "tokenFile", "exec", "auth-provider", "username", "password"}
CERTIFICATE_KEYS = {"client-certificate", "client-certificate-data"}
"""Keys of a kubeconfig's user: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/."""


def log_in(context: str, *, num_connections: int) -> kubernetes.client.ApiClient:
    """Return a client with the context's credentials; raise UserError if they or the kubeconfig cannot be used."""
    configuration = make_configuration()
    if context != IN_CLUSTER:
        check_kubeconfig(f"--on {context}", context)
    try:
        if context == IN_CLUSTER:
            kubernetes.config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            _load_kubeconfig(context, configuration)
    except LoginEndedError as error:
        raise UserError(f"--on {context}: {_describe_plugin(context)} {error}") from None
    except (ConfigException, OSError, yaml.YAMLError) as error:
        hint = IN_CLUSTER_HINT if context == IN_CLUSTER else "`kubectl config get-contexts` lists yours"
        raise UserError(f"--on {context}: {describe_error(error)}; {hint}") from None
    except Exception as error:  # noqa: BLE001  (whatever the client meets in credentials: its text may show them)
        hint = "see that those that end in -data are Base64, and that user name and password are texts"
        raise UserError(
            f"--on {context}: {_name_user(context)}: its credentials cannot be read ({type(error).__name__}); "
            f"{IN_CLUSTER_HINT if context == IN_CLUSTER else hint}"
        ) from None
    _check_host(configuration.host, context)
    configuration.connection_pool_maxsize = num_connections
    configuration.retries = False
    client = _make_client(configuration, context)
    try:
        read_authorization(client, context)
        _check_certificates(configuration, context)
    except ValueError as error:
        raise UserError(f"--on {context}: {error}") from None
    return client


def _make_client(configuration: kubernetes.client.Configuration, context: str) -> kubernetes.client.ApiClient:
    place = _name_cluster(context)
    try:
        lead_to_proxy(configuration, place)
    except ValueError as error:
        raise UserError(f"--on {context}: {error}") from None
    try:
        return kubernetes.client.ApiClient(configuration)
    except Exception as error:  # noqa: BLE001  (whatever it meets in the settings: its text may show a password)
        raise UserError(f"--on {context}: {place}: no client can be made of it ({type(error).__name__})") from None


def _check_host(host: str, context: str) -> None:
    """Raise UserError where no server can be at this address: at the first request it would look like a dead one."""
    place = SERVICE_ADDRESS if context == IN_CLUSTER else f"{find_kubeconfig()}: the cluster of this context: server"
    if not host:
        place = f"{find_kubeconfig()}: the cluster of this context"
        raise UserError(f"--on {context}: {place} has no server, expected https://HOST:PORT")
    if problem := find_server_problem(host):
        raise UserError(f"--on {context}: {place} {problem}")


def _load_kubeconfig(context: str, configuration: kubernetes.client.Configuration) -> None:
    """Fill in the configuration; LoginEndedError where a program that the kubeconfig names for that does not end."""

    def load() -> None:
        kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=find_kubeconfig(), context=context, client_configuration=configuration
        )

    limit_login(load, find_limit_seconds())


def _describe_plugin(context: str) -> str:
    return f"{_name_user(context)}: the program that gives its credentials (exec or auth-provider)"


def read_authorization(client: kubernetes.client.ApiClient, context: str) -> dict[str, str]:
    """Return the header that the client logs in with, renewed where it is old; ValueError where none can be made."""
    headers: dict[str, str] = {}
    try:
        limit_login(
            lambda: client.update_params_for_auth(headers, [], ["BearerToken"], "", "", None), find_limit_seconds()
        )
    except LoginEndedError as error:
        raise ValueError(f"{_describe_plugin(context)} {error}") from None
    except Exception as error:  # noqa: BLE001  (whatever a token file or a plugin does: its text may show the token)
        message = describe_error(error) if isinstance(error, ConfigException | OSError) else type(error).__name__
        raise ValueError(f"{name_token(context)} cannot be renewed ({message})") from None
    return {name: _check_header(value, context) for name, value in headers.items()}


def find_context(on: str) -> str:
    """Return the context that `--on` names; `current` is the kubeconfig's own. UserError if there is none."""
    if on == IN_CLUSTER:
        return on
    check_kubeconfig(f"--on {on}")
    try:
        contexts, active = kubernetes.config.list_kube_config_contexts(find_kubeconfig())  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, yaml.YAMLError) as error:
        hint = "set KUBECONFIG, or leave --on out to run here"
        raise UserError(f"--on {on}: {describe_error(error)}; {hint}") from None
    names = [str(context["name"]) for context in contexts]
    if on == CURRENT:
        return str(active["name"])
    if on not in names:
        raise UserError(f"--on {on}: no such context; yours are {', '.join(names)}, and `local` is this machine")
    return on


def describe_error(error: Exception) -> str:
    """Return the message of an error about a kubeconfig, on one line; for a file that is no YAML, only the line."""
    if isinstance(error, yaml.YAMLError):
        mark = getattr(error, "problem_mark", None)
        return f"{find_kubeconfig()} is no YAML" + (f", see line {mark.line + 1}" if mark else "")
    text = KIND_OF_ERROR.sub("", " ".join(str(error).split()))
    message = re.sub(r"[{\[].*", "(no text)", text)  # as a name, with whatever stands below it
    return message or type(error).__name__


def _check_header(value: str, context: str) -> str:
    """Return a header without white space around its token, such as a file's last line break; else ValueError."""
    scheme, _, token = value.partition(" ")
    if not re.fullmatch(TOKEN, token.strip()):
        raise ValueError(
            f"{name_token(context)} is empty or has a space, a line break or another character that no token has; "
            "log in again, or write it again without"
        )
    return f"{scheme} {token.strip()}"


def _check_certificates(configuration: kubernetes.client.Configuration, context: str) -> None:
    """Raise ValueError for files that OpenSSL cannot use: at the first request it would look like a dead server."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if configuration.cert_file:
        try:
            tls.load_cert_chain(configuration.cert_file, configuration.key_file, password=lambda: "")
        except (OSError, ValueError):
            raise ValueError(
                f"{_name_user(context)}: client-certificate(-data) or client-key(-data) cannot be used; expected a "
                "certificate and its key in PEM, without a password"
            ) from None
    if configuration.ssl_ca_cert:
        try:
            tls.load_verify_locations(configuration.ssl_ca_cert)
        except (OSError, ValueError):
            place = "ca.crt of the service account" if context == IN_CLUSTER else "certificate-authority(-data)"
            raise ValueError(f"{place}: cannot be used; expected certificates in PEM") from None


def hash_authorities(client: kubernetes.client.ApiClient) -> tuple[str, ...]:
    """Return the SHA-256 of each certificate that the API server's own is checked by, in hex, sorted.

    By them clusters are told apart that have the same name: every pod may read those of its cluster, and kubeadm, kind,
    k3s and the clouds make new ones for each. While they are replaced, the file has the old ones and the new ones.
    Empty where they are the system's, or nothing is checked.
    """
    configuration = client.configuration
    if not (configuration.ssl_ca_cert and configuration.verify_ssl):
        return ()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.load_verify_locations(configuration.ssl_ca_cert)
    return tuple(sorted({hashlib.sha256(data).hexdigest() for data in tls.get_ca_certs(binary_form=True)}))


def name_login(context: str) -> str:
    """Return in words where server and certificates of a context stand."""
    return "the environment and the service account of this pod" if context == IN_CLUSTER else "your kubeconfig"


def name_token(context: str) -> str:
    """Return in words where the token of a context comes from: kubeconfig, user and the keys that may hold it."""
    if context == IN_CLUSTER:
        return SERVICE_ACCOUNT
    return f"{_name_user(context)}: its token (token, tokenFile, exec or auth-provider)"


def name_credentials(context: str) -> str:
    """Return in words where the credentials of a context come from: as `name_token`, or its client certificate."""
    if context == IN_CLUSTER:
        return SERVICE_ACCOUNT
    with suppress(Exception):  # it only makes the message better
        name = _find_user(context)
        users = (found for path in list_kubeconfigs() for found in read_kubeconfig(path).get("users") or ())
        user = next(found["user"] for found in users if found["name"] == name)
        if CERTIFICATE_KEYS & user.keys() and not TOKEN_KEYS & user.keys():
            return (
                f"{_name_user(context)}: its client certificate (client-certificate or client-certificate-data), whose "
                "dates `openssl x509 -noout -dates` shows"
            )
    return name_token(context)


def _name_cluster(context: str) -> str:
    """Return the names of the kubeconfig and of the cluster that the context uses."""
    if context == IN_CLUSTER:
        return "the cluster of this pod"
    with suppress(Exception):  # it only makes the message better
        contexts, _ = kubernetes.config.list_kube_config_contexts(find_kubeconfig())  # type: ignore[no-untyped-call]
        name = next(item["context"]["cluster"] for item in contexts if item["name"] == context)
        return f"{find_kubeconfig()}: cluster `{name}`"
    return f"{find_kubeconfig()}: the cluster of context {context}"


def _find_user(context: str) -> str:
    """Return the name of the user that the context uses; raises whatever the client does where there is none."""
    contexts, _ = kubernetes.config.list_kube_config_contexts(find_kubeconfig())  # type: ignore[no-untyped-call]
    return str(next(item["context"]["user"] for item in contexts if item["name"] == context))


def _name_user(context: str) -> str:
    """Return the names of the kubeconfig and of the user in it that the context uses; in a pod, the account's token."""
    if context == IN_CLUSTER:
        return SERVICE_ACCOUNT
    with suppress(Exception):  # it only makes the message better
        return f"{find_kubeconfig()}: user `{_find_user(context)}`"
    return f"{find_kubeconfig()}: the user of context {context}"

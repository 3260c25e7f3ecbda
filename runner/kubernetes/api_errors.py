"""The errors of the API server, as exceptions and as messages to the user."""

import json
import re
import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import kubernetes.client
import urllib3

from bench.errors import TransientError, UserError
from bench.redaction import hide_secrets
from runner.cluster_contexts import IN_CLUSTER
from runner.kubernetes.login import describe_error, name_user

UNREACHABLE = "Unreachable"
WRONG_SERVER = "WrongServer"
INVALID_ANSWER = "InvalidAnswer"
ANONYMOUS = 'User "system:anonymous"'
"""The user name that Kubernetes reports for requests without valid credentials."""
REFUSED_CREDENTIALS = "the API server does not accept the credentials (401 Unauthorized), which may have expired"
NOT_READY = "not yet ready to handle request"
"""What admission plugins answer with 403 while the API server starts:
https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go
"""
NO_RIGHT = re.compile(r"User .* cannot \w+ resource ")
"""What an authorizer answers with 403: also RBAC's for a while, to users who have the right, when the server starts."""
MAX_MESSAGE_CHARACTERS = 4000
"""Of what a server says itself: admission webhooks explain at length."""
MAX_PAGE_CHARACTERS = 300
"""The same of an answer that is no Status, such as a page of a proxy."""
# https://kubernetes.io/docs/reference/using-api/api-concepts/: what a request may be repeated for
TRANSIENT = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


class ApiError(Exception):
    """The API server refused a request. `status` is the HTTP code; `reason` and `message` are the server's."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.client: kubernetes.client.ApiClient | None = None
        """The client whose credentials were sent."""
        self.was_allowed = False
        """Whether a request of the same verb and kind was allowed before."""


class BusyError(ApiError):
    """The server asks for a pause or does not answer. `retry_after` in seconds; None if the server names none."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None) -> None:
        super().__init__(status, reason, message)
        self.retry_after = retry_after


class AnswerError(ApiError):
    """The API server, or what stands in its place, sent an answer that is none of Kubernetes."""

    def __init__(self, found: str) -> None:
        super().__init__(HTTPStatus.OK, INVALID_ANSWER, f"the API server's answer is none of Kubernetes: {found}")


def read_refusal(verb: str, response: urllib3.BaseHTTPResponse, body: bytes) -> ApiError:
    """Return the error that an answer of 400 and above means, with the message of the Status object in its body."""
    try:
        status = json.loads(body)
        reason, message = str(status.get("reason") or ""), _write_line(status.get("message"), MAX_MESSAGE_CHARACTERS)
    except (ValueError, AttributeError, RecursionError):  # of a proxy: perhaps a page of HTML
        page = body[: 10 * MAX_PAGE_CHARACTERS].decode(errors="replace")
        reason, message = str(response.reason), _write_line(page, MAX_PAGE_CHARACTERS)
    is_starting = response.status == HTTPStatus.FORBIDDEN and NOT_READY in message
    # A create that conflicts met another request inside the server, for example at a quota.
    if response.status in TRANSIENT or is_starting or (verb == "create" and reason == "Conflict"):
        pause = response.headers.get("Retry-After", "")
        return BusyError(response.status, reason, message, float(pause) if re.fullmatch("[0-9]{1,6}", pause) else None)
    return ApiError(response.status, reason, message or f"HTTP {response.status}")


def read_watch_error(status: dict[str, Any]) -> ApiError:
    """Return the error that an event of type ERROR in a watch means."""
    code, reason = status.get("code", HTTPStatus.INTERNAL_SERVER_ERROR), str(status.get("reason") or "")
    words = status.get("message") or f"the API server ended a watch with an error and no message (code {code})"
    message = _write_line(words, MAX_MESSAGE_CHARACTERS)
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return BusyError(code, reason, message, None)
    return ApiError(code, reason, message)


def _write_line(text: object, max_characters: int) -> str:
    """Return what a server says on one line, without the credentials that were sent.

    With a line of its own, it could look like another of this tool's.
    """
    whole = " ".join(str(text or "").encode(errors="replace").decode().split())
    line = hide_secrets(whole[: 2 * MAX_MESSAGE_CHARACTERS])
    return line if len(line) <= max_characters else f"{line[: max_characters - 1]}…"


def make_unreachable(error: Exception, *, is_known: bool = True, proxy: object = None) -> ApiError:
    """Return the error for a server that does not answer, without the addresses that urllib3's message has.

    `is_known`: it has answered before. Of one that never did, a name that there is not, a certificate that is not
    accepted and an answer that is no TLS are faults of the kubeconfig, and waiting mends none of them. `proxy`: the URL
    of the one that was asked, as text and without user and password.
    """
    via = f", asked by the proxy {proxy} (proxy-url of the kubeconfig, or of the environment)" if proxy else ""
    if not is_known and (fault := _find_fault_of_kubeconfig(error)):
        return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, WRONG_SERVER, f"{fault}{via}")
    message = re.sub(r"^.*\(host=[^)]*\): |<[^>]* object at 0x[0-9a-f]+>(: )?", "", describe_error(error))
    text = f"the API server{via and f'{via},'} does not answer: {message}"
    return BusyError(HTTPStatus.SERVICE_UNAVAILABLE, UNREACHABLE, text, None)


def _find_fault_of_kubeconfig(error: Exception) -> str:
    """Return in words why no server can be reached by this kubeconfig; empty where it may be the server's fault."""
    for cause in _list_causes(error):
        if isinstance(cause, socket.gaierror) and cause.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
            return "there is no host of the API server's name"
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = cause.verify_message.rstrip(".")
            clock = ", if this machine's clock is right" if re.search("expired|not yet valid", reason) else ""
            return f"the certificate of the API server is not accepted: {reason}{clock}"
        if isinstance(cause, ssl.SSLError) and cause.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
            return "what answers at the API server's address does not speak TLS (https)"
    return ""


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and those that it was raised for; urllib3 keeps some of them in its arguments."""
    waiting, seen = [error], set[int]()
    while waiting:
        found = waiting.pop()
        if id(found) not in seen:
            seen.add(id(found))
            yield found
            linked = (found.__cause__, found.__context__, *found.args)
            waiting += [one for one in linked if isinstance(one, BaseException)]


def to_user_error(error: ApiError, context: str) -> UserError:
    """Return the message to the user for a refusal, or for a server that did not come back."""
    if isinstance(error, BusyError):
        hint = "the Jobs go on; give the same command again when it is back"
        who = "" if error.reason == UNREACHABLE else f"the API server answers {int(error.status)}: "
        return TransientError(f"--on {context}: {who}{error.message}; {hint}")
    if is_unauthorized(error):
        hint = "Jobs that were submitted go on, and the same command resumes the run"
        remedy = f"log in again, or write new ones there; {hint}"
        return UserError(f"--on {context}: {REFUSED_CREDENTIALS}: {name_user(context)}; {remedy}")
    if error.reason == INVALID_ANSWER:
        hint = "another program may answer in the server's place, or an extension of it is broken"
    elif error.reason == WRONG_SERVER:
        where = "the service account of this pod" if context == IN_CLUSTER else "your kubeconfig"
        hint = f"look at the server and its certificates in {where}"
    else:
        hint = "`benchmatrix doctor` says what is missing"
    return UserError(f"--on {context}: {error.message}; {hint}")


def is_unauthorized(error: ApiError) -> bool:
    """Return whether the API server refused the credentials without a word more; a login of ours says what failed."""
    return error.status == HTTPStatus.UNAUTHORIZED and error.message in ("Unauthorized", "HTTP 401")

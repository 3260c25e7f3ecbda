"""The store's errors, and those of the libraries and the system as messages that say what to fix."""

import errno
import re
from typing import Any

from bench.errors import TransientError, UserError
from bench.redaction import hide_secrets

MAX_SHOWN = 400
"""Characters of what a library says."""
CREDENTIALS = (
    "{place} does not accept the credentials ({code}); check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the "
    "profile that AWS_PROFILE names, or log in again"
)
REGION = "the bucket is not in the region that was asked at {place}; set AWS_REGION to the bucket's region"
CLOCK = (
    "{place} refuses requests whose date is not that of its own clock: this machine's clock is wrong, or the server's; "
    "set it (`timedatectl` shows this one's)"
)
NO_BUCKET = "the bucket does not exist at {place}; {make_bucket} or name another with --store"
BY_CODE = {
    "NoSuchBucket": NO_BUCKET,
    "ContainerNotFound": NO_BUCKET,
    **dict.fromkeys(("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken"), CREDENTIALS),
    **dict.fromkeys(
        ("AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"), REGION
    ),
    "RequestTimeTooSkewed": CLOCK,
}
"""What to say of the codes of S3 and Azure
(https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList)."""
FORBIDDEN = (
    "{place} does not permit this (status {status}); the account needs the right to list, read, write and delete"
)
NOT_S3 = (
    "{place} answers with status {status}, and not as S3 does; is it the address of the S3 server, and not of its "
    "console or of a proxy?"
)
UNREACHABLE = (
    "{place} cannot be reached ({cause}); check that the server runs, the network, and the endpoint (AWS_ENDPOINT_URL "
    "for s3)"
)
UNTRUSTED = (
    "the certificate of {place} is not accepted ({cause}); name the file with its authority's certificate (PEM) in "
    "SSL_CERT_FILE, or have the server show a valid one for the host that the endpoint names (AWS_ENDPOINT_URL for s3)"
)
CAUSES = {
    "onnection refused": "Connection refused",
    "dns error": "its name cannot be resolved",
    "NameResolutionError": "its name cannot be resolved",
    "imed out": "it did not answer in time",
    "TimedOut": "it did not answer in time",
    "nreachable": "no route to it",
    "CaUsedAsEndEntity": "it is the certificate of an authority, which a server may not show as its own",
    "Expired": "it has expired",
    "certificate has expired": "it has expired",
    "NotValidForName": "it is for another host",
    "mismatch": "it is for another host",
    "UnknownIssuer": "its authority is not known here",
    "local issuer": "its authority is not known here",
    "self-signed": "its authority is not known here",
}
"""What stands in the text of an error of obstore or botocore, and what it means."""


class StoreError(UserError):
    """The store cannot be used: the message says which one, why, and how to fix it."""


class StoreUnreachable(StoreError, TransientError):  # noqa: N818  (a state rather than an error)
    """The store does not answer at present, or its server reports an error of its own; a later try may succeed."""


class StoreUntrusted(StoreError):  # noqa: N818  (a state rather than an error)
    """The certificate of the store's server cannot be verified, which no later try mends."""


class UnreadableObject(StoreError):  # noqa: N818  (what an object is rather than what happened)
    """One object cannot be read, such as one that is too large. The others can be."""


class KeyMissing(LookupError):  # noqa: N818  (an answer rather than an error)
    """There is no object with that key."""


def explain_os_error(number: int | None, place: str) -> str | None:
    """Return what to report of the system's error `number` at a directory; None for any other error."""
    if number in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {place} is full; free some space or name another place with --store"
    if number == errno.EFBIG:
        return f"no file may be so large at {place}; raise the limit (`ulimit -f`) or name another place with --store"
    if number == errno.EROFS:
        return f"the file system of {place} is read-only; mount it for writing or name another place with --store"
    if number in (errno.EACCES, errno.EPERM):
        return f"no permission to use {place}; change its permissions or name another place with --store"
    if number in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
        return f"{place} is a file, or has one where a directory is needed; move it or name another place with --store"
    return None


def explain_answer(status: int, code: str, message: str, place: str, make_bucket: str) -> StoreError:
    """Return the error for a server's answer that is none of success; `code` and `message`: of its XML, or empty."""
    if "request time and" in message:  # rclone says AccessDenied
        code = "RequestTimeTooSkewed"
    known = BY_CODE.get(code) or (FORBIDDEN if status in (401, 403) else REGION if status == 301 else None)
    other = "{place} answers with status {status} ({code}), an error of its own" if code.strip("0123456789") else NOT_S3
    words = known or other
    kind = StoreUnreachable if known is None and (status >= 500 or status == 429) else StoreError
    return kind(words.format(place=place, status=status, code=code, make_bucket=make_bucket))


def explain_failure(text: str, place: str) -> StoreError:
    """Return the error for a request that got no answer; `text`: what the library says of it, of any length."""
    is_untrusted = "InvalidCertificate" in text or "CERTIFICATE_VERIFY_FAILED" in text
    kind, words = (StoreUntrusted, UNTRUSTED) if is_untrusted else (StoreUnreachable, UNREACHABLE)
    cause = next((meaning for sign, meaning in CAUSES.items() if sign in text), "the connection broke")
    return kind(words.format(place=place, cause=cause))


def explain_obstore(error: BaseException, place: str, make_bucket: str) -> StoreError | None:
    """Return the error for one of obstore; None for an object that is not there.

    obstore has no codes of servers: its text is a headline, which ends in the server's answer, and a debug print.
    """
    text = str(error)
    headline = text.partition("Debug source:")[0]
    status, code = re.search(r"status code: (\d+)", headline), re.search(r"<Code>(\w+)</Code>", headline)
    if isinstance(error, FileNotFoundError) and (code is None or code[1] not in BY_CODE):
        return None
    if status is not None:
        return explain_answer(int(status[1]), code[1] if code else "", headline, place, make_bucket)
    if "redirect without LOCATION" in headline:
        return StoreError(REGION.format(place=place))
    if "HTTP error:" in headline:
        return explain_failure(text, place)
    shown = hide_secrets(" ".join(headline.split()))
    _, is_login, reason = shown.partition("credential provider: ")
    if is_login:
        return explain_login(reason)
    return StoreError(shown[:MAX_SHOWN])


def explain_botocore(error: Any, place: str, make_bucket: str) -> StoreError:
    """Return the error for one of botocore: a ClientError or a BotoCoreError."""
    from botocore.exceptions import ClientError, ConnectionError, HTTPClientError
    from botocore.parsers import ResponseParserError

    if isinstance(error, ClientError):
        answer, status = error.response["Error"], error.response["ResponseMetadata"]["HTTPStatusCode"]
        return explain_answer(status, answer.get("Code", ""), answer.get("Message", ""), place, make_bucket)
    if isinstance(error, ConnectionError | HTTPClientError):
        return explain_failure(f"{error} {error.kwargs.get('error')!r}", place)
    if isinstance(error, ResponseParserError):
        return StoreError(NOT_S3.format(place=place, status=200))
    return explain_login(f"{type(error).__name__}: {hide_secrets(str(error))}")


def explain_login(reason: str) -> StoreError:
    """Return the error for credentials that cannot be had at present; `reason` has no secrets."""
    reason = " ".join(reason.split())[:MAX_SHOWN]
    if "AWS_" in reason or "aws_" in reason:  # of check_key_text
        return StoreError(reason.removeprefix("ValueError: "))
    return StoreError(f"the AWS credentials cannot be renewed ({reason}); log in again")


def is_panic(error: BaseException) -> bool:
    """Return whether the error is a panic of obstore's Rust code, which pyo3 derives from BaseException."""
    return type(error).__name__ == "PanicException"

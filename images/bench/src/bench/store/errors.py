"""The store's errors, and what the system, obstore and botocore say as one sentence each that says what to fix."""

import errno
import os
import re
from typing import Any

from bench.errors import TransientError, UserError
from bench.redaction import hide_secrets

CHECK_BYTES = 65_536
"""Of what is written to see whether a store can be written: about a result."""
MAX_SHOWN = 400
"""Characters of what a library says."""


class StoreError(UserError):
    """The store cannot be used: the message says which one, why, and how to fix it."""


class StoreUnreachable(StoreError, TransientError):  # noqa: N818  (a state rather than an error)
    """The store does not answer at present, or its server reports an error of its own; a later try may succeed."""


class UnreadableObject(StoreError):  # noqa: N818  (what an object is rather than what happened)
    """One object cannot be read, such as one that is too large. The others can be."""


class KeyMissing(LookupError):  # noqa: N818  (an answer rather than an error)
    """There is no object with that key."""


OWN_ERROR = "{place} answers with status {status} ({code}{said}), an error of its own"
NOT_S3 = (
    "{place} answers with status {status}, and not as S3 does; is it the address of the S3 server, and not of its "
    "console or of a proxy?"
)
ELSEWHERE = " or name another place with --store"
# What stands in an error, the first that fits: numbers of the system (errno(3)), codes of S3
# (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList) and of Azure.
MESSAGES = {
    f"Errno ({errno.ENOSPC}|{errno.EDQUOT})]": "the disk of {place} is full; free some space" + ELSEWHERE,
    f"Errno {errno.EACCES}]": "no permission to use {place}; change its permissions" + ELSEWHERE,
    f"Errno {errno.EPERM}]": "{place}: not permitted, by its permissions or by what its file system can do; change it"
    + ELSEWHERE,
    f"Errno ({errno.EEXIST}|{errno.ENOTDIR}|{errno.EISDIR})]": "{place} is a file, or has one where a directory is "
    "needed; move it" + ELSEWHERE,
    f"Errno {errno.EROFS}]": "the file system of {place} is read-only; mount it for writing" + ELSEWHERE,
    "RequestTimeTooSkewed|request time and": "{place} refuses requests whose date is not that of its own clock: this "
    "machine's clock is wrong, or the server's; set it (`timedatectl` shows this one's)",  # rclone: AccessDenied
    "<Code>(NoSuchBucket|ContainerNotFound)<": "the bucket does not exist at {place}; make it or name another with "
    "--store",
    "<Code>(InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken)<": "{place} does not accept the "
    "credentials ({code}); check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the profile that AWS_PROFILE names, or "
    "log in again",
    "<Code>(AuthorizationHeaderMalformed|PermanentRedirect|IllegalLocationConstraintException)<|status code: 301"
    "|redirect without LOCATION": "the bucket is not in the region that was asked at {place}; set AWS_REGION to the "
    "bucket's region",
    "status code: 40[13].*(?i:<html|<!doctype|<code></code>)": NOT_S3,
    "status code: 40[13].*<Code>(?!AccessDenied<)": "{place} refuses this with status {status} ({code}{said})",
    "status code: 40[13]": "{place} does not permit this (status {status}); the account needs the right to list, read, "
    "write and delete",
    "status code: (5|429).*<Code>": OWN_ERROR,
    "status code: (5|429)": NOT_S3,
    "status code: .*<Code>": OWN_ERROR,
    "status code: ": NOT_S3,
    "InvalidCertificate|CERTIFICATE_VERIFY_FAILED": "the certificate of {place} is not accepted ({cause}); name the "
    "file with its authority's certificate (PEM) in SSL_CERT_FILE, or have the server show a valid one for the host "
    "that the endpoint names (AWS_ENDPOINT_URL for s3)",
    "HTTP error:": "{place} cannot be reached ({cause}); check that the server runs, the network, and the endpoint "
    "(AWS_ENDPOINT_URL for s3)",
    "credential provider: ": "the AWS credentials cannot be renewed ({text}); log in again",
    "": "{text}",
}
OF_A_FOLDER = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EDQUOT})
"""Of the system: not all of a directory need have them."""
SIGNS_OF_ABSENCE = ("status code: (5|429)", "HTTP error:")
"""Which of them mean that a later try may succeed."""
CAUSES = {
    "onnection refused": "Connection refused",
    "dns error|NameResolutionError": "its name cannot be resolved",
    "imed ?out": "it did not answer in time",
    "nreachable": "no route to it",
    "CaUsedAsEndEntity": "it is the certificate of an authority, which a server may not show as its own",
    "Expired|has expired": "it has expired",
    "NotValidForName|mismatch": "it is for another host",
    "UnknownIssuer|local issuer|self-signed": "its authority is not known here",
    "": "the connection broke",
}
"""What stands in an error of a connection, and what it means."""


def explain(error: BaseException, place: str) -> StoreError:
    """Return the error for one of the system, obstore or botocore."""
    text = _write_out(error)
    status, code = re.search(r"status code: (\d+)", text), re.search(r"<Code>([\w.]+)<", text)
    sign = next(sign for sign in MESSAGES if re.search(sign, text, re.DOTALL))
    cause = next(meaning for sign, meaning in CAUSES.items() if re.search(sign, text))
    said = re.search("<Message>(.+?)</Message>", text, re.DOTALL)
    if isinstance(error, OSError) and error.errno in OF_A_FOLDER and error.filename:
        place = os.path.dirname(error.filename)
    message = MESSAGES[sign].format(
        place=place,
        said=f": {hide_secrets(' '.join(said[1].split()))[:MAX_SHOWN]}" if said else "",
        status=status[1] if status else 200,
        code=code[1] if code else "",
        cause=cause,
        text=hide_secrets(" ".join(text.rpartition("credential provider: ")[2].split()))[:MAX_SHOWN],
    )
    return StoreUnreachable(message) if sign.startswith(SIGNS_OF_ABSENCE) else StoreError(message)


def _write_out(error: Any) -> str:
    """Return an error as obstore writes it: a headline with the status and the server's answer, or with the cause."""
    if not type(error).__module__.startswith("botocore"):
        headline = str(error).partition("Debug source:")[0]
        return str(error) if "HTTP error:" in headline and "status code:" not in headline else headline
    from botocore.exceptions import ClientError, ConnectionError, HTTPClientError
    from botocore.parsers import ResponseParserError

    if isinstance(error, ClientError):
        answer, status = error.response["Error"], error.response["ResponseMetadata"]["HTTPStatusCode"]
        code = answer.get("Code", "")
        # botocore's own: a number where there is no XML, nothing where it is a web page
        shown = "" if code.isdigit() else f"<Code>{code}</Code>"
        return f"status code: {status} {shown} <Message>{answer.get('Message', '')}</Message>"
    if isinstance(error, ConnectionError | HTTPClientError):
        return f"HTTP error: {error} {error.kwargs.get('error')!r}"
    if isinstance(error, ResponseParserError):
        return "status code: 200"
    return f"credential provider: {type(error).__name__}: {error}"

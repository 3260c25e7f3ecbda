"""The store's errors: their classes, and the translation of obstore's error texts into messages that say what to fix.

obstore's errors carry no codes: their text starts with a headline, which ends in the server's answer, and goes on with
a debug print of the cause. Seen in obstore 0.8 and 0.12.
"""

import errno
import re

from bench.certificates import VARIABLE as CERTIFICATES
from bench.errors import TransientError, UserError
from bench.known_secrets import hide_printed_secrets, hide_secrets
from bench.proxies import Proxy

MAX_HEADLINE_CHARS = 400

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
NOT_PERMITTED = (errno.EACCES, errno.EPERM)
NOT_A_DIRECTORY = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR)

FOREIGN_LISTING = (
    "{place} answers a listing with what is none, such as a web page; is it the address of the S3 server, and not of "
    "its console or of a proxy?"
)
ENDLESS = "its listing does not end; is the server one that lists by pages?"
NO_WAY_ON = (
    "{place} says that a listing goes on, and not how (IsTruncated without NextContinuationToken), so what is in the "
    "bucket cannot be told; the server has to know ListObjectsV2: update it, or use another one"
)
ELSEWHERE = (
    "{place} sends requests elsewhere; name the server itself as the endpoint, and the bucket's region in "
    "AWS_DEFAULT_REGION"
)
NOWHERE = "http://127.0.0.1:0"
"""Where the store library is told to find hosts other than the server's own: at a port that nothing can listen on."""
CERTIFICATE_PROBLEMS = {
    "UnknownIssuer": "its authority is not known here",
    "CaUsedAsEndEntity": "it is the certificate of an authority, which a server may not show as its own",
    "Expired": "it has expired",
    "NotValidYet": "it is not valid yet",
    "NotValidForName": "it is for another host",
    "Revoked": "it was revoked",
}
"""The store library's names (rustls, CertificateError), less an ending `Context`."""
UNTRUSTED = (
    "the certificate of {place} is not accepted ({found}); name the file with its authority's certificate (PEM) in "
    f"{CERTIFICATES}, or have the server show a valid one for the host that the endpoint names (AWS_ENDPOINT_URL for "
    "s3)"
)
# What the text shows, and what to say about it; the first that matches is taken.
EXPLANATIONS = (
    (
        r"<Code>(NoSuchBucket|ContainerNotFound)<",
        "the bucket does not exist at {place}; {make_bucket} or name another with --store",
    ),
    (
        r"<Code>(InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken)<",
        "{place} does not accept the credentials ({found}); check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the "
        "profile that AWS_PROFILE names, or log in again",
    ),
    (
        r"External AWS credential provider: ValueError: (aws_.*|AWS_.*)",
        "{found}",
    ),
    (
        r"External AWS credential provider: (.*)",
        "the AWS credentials cannot be renewed ({found}); log in again",
    ),
    (
        r"(<Code>AuthorizationHeaderMalformed<|redirect without LOCATION)",
        "the bucket is not in the region that was asked at {place}; set AWS_REGION to the bucket's region",
    ),
    (
        r"<Code>(RequestTimeTooSkewed)<|<Message>(The difference between the request time and)",
        "{place} refuses requests whose date is not that of its own clock: this machine's clock is wrong, or the "
        "server's; set it (`timedatectl` shows this one's)",
    ),
    (
        r"non-2xx status code: (401|403)",
        "{place} does not permit this (status {found}); the account needs the right to list, read, write and delete",
    ),
    (
        r"(Got invalid list response)",
        FOREIGN_LISTING,
    ),
    (
        r"non-2xx status code: (30[1-9])",
        ELSEWHERE,
    ),
    (
        r"HTTP error: (.*)",
        "{place} cannot be reached ({found}); check that the server runs, the network, and the endpoint "
        "(AWS_ENDPOINT_URL for s3)",
    ),
)


class StoreError(UserError):
    """The store cannot be used: the message says which one, why, and how to fix it."""


class StoreUnreachable(StoreError, TransientError):  # noqa: N818  (a state rather than an error)
    """The store does not answer at present, or its server reports an error of its own; a later try may succeed."""


class StoreUntrusted(StoreError):  # noqa: N818  (a state rather than an error)
    """The certificate of the store's server cannot be verified, which no later try mends."""


class UnreadableObject(StoreError):  # noqa: N818  (what an object is rather than what happened)
    """One object cannot be read, such as a pipe in its place, or one that is too large. The others can be."""


class KeyMissing(LookupError):  # noqa: N818  (an answer rather than an error)
    """There is no object with that key."""


def explain_error(text: str, place: str, make_bucket: str) -> str | None:
    """Return what to report of an error of obstore or of Python's at `place`; None for one that is not known."""
    if is_sent_elsewhere(text):
        return ELSEWHERE.format(place=place)
    problem = find_certificate_problem(text)
    if problem is not None:
        return UNTRUSTED.format(place=place, found=problem)
    headline = text.partition("Debug source:")[0]
    os_error = re.search(r"\(os error (\d+)\)", headline)
    if os_error:
        return explain_os_error(int(os_error[1]), place)
    own_error = re.fullmatch(r"\[Errno (\d+)\] [^:]*(?:: '([^']*)')?", text)  # of a listing, which Python makes
    if own_error:
        return explain_os_error(int(own_error[1]), own_error[2] or place)
    for pattern, explanation in EXPLANATIONS:
        match = re.search(pattern, headline)
        if match:
            found = hide_printed_secrets(find_cause(text) or match[1] or "")[:MAX_HEADLINE_CHARS]
            return explanation.format(place=place, make_bucket=make_bucket, found=found)
    return None


def name_place(place: str, proxy: Proxy | None) -> str:
    """Return the server's address, and what passes requests on to it: either may be what does not answer."""
    return place if proxy is None else f"{place}, asked by {proxy},"


def explain_os_error(number: int | None, place: str) -> str | None:
    """Return what to report of the system's error `number` at a directory; None for any other error."""
    if number in DISK_FULL:
        return f"the disk of {place} is full; free some space or name another place with --store"
    if number == errno.EFBIG:
        return f"no file may be so large at {place}; raise the limit (`ulimit -f`) or name another place with --store"
    if number == errno.EROFS:
        return f"the file system of {place} is read-only; mount it for writing or name another place with --store"
    if number in NOT_PERMITTED:
        return f"no permission to use {place}; change its permissions or name another place with --store"
    if number in NOT_A_DIRECTORY:
        return f"{place} is a file, or has one where a directory is needed; move it or name another place with --store"
    return None


def classify_error(text: str) -> type[StoreError]:
    """Return the class of an obstore error: one that may pass, a certificate that is not accepted, or any other."""
    if find_certificate_problem(text) is not None:
        return StoreUntrusted
    return StoreUnreachable if is_transient(text) else StoreError


def is_transient(text: str) -> bool:
    """Return whether an obstore error may pass: the server cannot be reached, is busy, or has an error of its own."""
    if is_sent_elsewhere(text) or find_certificate_problem(text) is not None:
        return False
    return re.search(r"HTTP error: |status code: (5[0-9][0-9]|429)", text.partition("Debug source:")[0]) is not None


def find_certificate_problem(text: str) -> str | None:
    """Return in words why the server's certificate was not accepted; None for other errors.

    Of an error of obstore, or of OpenSSL in its words, as `S3Requests` makes it.
    """
    headline, _, details = text.partition("Debug source:")
    if "status code:" in headline:  # the server answered: what follows are its own words
        return None
    refused = re.search(r"^HTTP error: .*certificate verify failed: (.*?)( \(_ssl\.c:\d+\))?$", headline)
    if refused:
        return refused[1].rstrip(".")
    found = re.search(r"^ *error: InvalidCertificate\(\s*(?:Other\(\s*OtherError\(\s*)?(\w+)", details, re.MULTILINE)
    if not found or "HTTP error:" not in headline:
        return None
    return CERTIFICATE_PROBLEMS.get(found[1].removesuffix("Context"), found[1])


def is_sent_elsewhere(text: str) -> bool:
    """Return whether an obstore error says that it was redirected to another host, which it was kept from asking."""
    _, _, details = text.partition("Debug source:")
    return re.search(rf"\b{re.escape(NOWHERE.removeprefix('http://'))},", details) is not None


def is_cut(text: str) -> bool:
    """Return whether an obstore error says that an answer began and did not come to its end."""
    return "HTTP error:" in text and re.search(r"IncompleteBody|IncompleteMessage|UnexpectedEof", text) is not None


def is_panic(error: BaseException) -> bool:
    """Return whether the error is a panic of the library's Rust code, which pyo3 derives from BaseException."""
    return type(error).__name__ == "PanicException"


def explain_panic(error: BaseException, settings: str) -> str:
    """Return what to report of a panic: only the names of Rust's errors in it, as its values may be secrets."""
    names = ", ".join(re.findall(r"\bInvalid[A-Za-z0-9]+", str(error))) or "no reason that could be shown"
    return f"the store library cannot work with the settings ({names}); check keys, endpoint and region in {settings}"


def get_headline(text: str) -> str:
    """Return the part of an obstore error before its debug print, on one line."""
    return hide_secrets(" ".join(text.partition("Debug source:")[0].split()))[:MAX_HEADLINE_CHARS]


def find_cause(text: str) -> str | None:
    """Return the innermost cause of a failed connection, such as `Connection refused`; None for other errors."""
    if "HTTP error:" not in text:
        return None
    causes = re.findall(r'(?:message|error): "?(.+?)"?,?$', text, re.MULTILINE)
    return causes[-1].rstrip("(") if causes else None

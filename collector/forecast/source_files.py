"""Read the bytes of a table from a path or a URL."""

import http.client
import os
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from bench.bounded_work import WorkTooLargeError, WorkTooSlowError, run_bounded
from bench.certificates import check_certificates
from bench.errors import UserError
from bench.foreign_files import FileProblem, ForeignFileError, read_foreign_file

TIMEOUT_SECONDS = 60.0
"""Of one step, such as to connect or to read the next bytes."""
LIMIT_SECONDS = 600.0
"""Of the whole download: a server that sends a byte a second never exceeds the time of one step. Epoch AI's largest
file takes 7 minutes at 64 kbit/s."""
MAX_BYTES = 64 * 2**20
"""Epoch AI's largest file has 3 MB (November 2026); what is much larger is no table of releases."""
URL_STARTS = ("https://", "http://")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_USER = re.compile(r"[a-z][a-z0-9+.-]*:/*[^/?#]*@", re.IGNORECASE)
# Some servers refuse Python's own name; this one says who asks.
USER_AGENT = "benchmatrix-forecast"


def read_source(source: str) -> bytes:
    """Return the content of a file or of what a URL (http, https) answers. Raises UserError where that fails."""
    if _USER.match(source):  # it would stand in messages, in documents and in the report
        raise UserError(
            "the URL of a table holds a user or a password, which is not sent; leave them out, or download the file "
            "yourself and name its path."
        )
    if source.startswith(URL_STARTS):
        return _download(source)
    if scheme := _SCHEME.match(source):
        raise UserError(
            f"{source}: URLs of {scheme[1]} are not read, only https and http; download the file and name its path."
        )
    try:
        return read_foreign_file(Path(source), max_bytes=MAX_BYTES)
    except ForeignFileError as error:
        if error.problem == FileProblem.TOO_LARGE:
            raise UserError(_explain_size(source)) from None
        raise UserError(f"{source}: {error}; name a CSV or Parquet file, or its URL.") from None


def _download(url: str) -> bytes:
    try:
        content = run_bounded(lambda: _ask(url), limit_seconds=LIMIT_SECONDS, max_bytes=4 * MAX_BYTES)
    except WorkTooLargeError:
        raise UserError(_explain_size(url)) from None
    except WorkTooSlowError:
        raise UserError(_explain_failure(url, f"it has not ended after {LIMIT_SECONDS:g} s")) from None
    except urllib.error.HTTPError as error:
        error.close()
        raise UserError(_explain_failure(url, f"HTTP status {error.code}")) from None
    except http.client.HTTPException as error:  # its text is what the server sent
        raise UserError(_explain_failure(url, f"the answer is cut or no HTTP: {type(error).__name__}")) from None
    except (OSError, ValueError) as error:  # URLError is an OSError; a URL of nonsense is a ValueError
        raise UserError(_explain_failure(url, str(error))) from error
    if len(content) > MAX_BYTES:
        raise UserError(_explain_size(url))
    return content


class _WebRedirect(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https, and from http to http: urllib would follow one to ftp as well."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if newurl.lower().startswith(("https://", f"{req.type}://")):
            return super().redirect_request(req, fp, code, msg, headers, newurl)
        fp.close()
        raise urllib.error.URLError("it redirects to what is neither https nor what was asked for")


def _ask(url: str) -> bytes:
    check_certificates(os.environ)
    request = urllib.request.Request(url, headers={"User-Agent": USER_AGENT})
    opener = urllib.request.build_opener(_WebRedirect)
    with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
        content: bytes = answer.read(MAX_BYTES + 1)
        if answer.length and len(content) <= MAX_BYTES:  # what is left of the length that the server announced
            raise http.client.IncompleteRead(b"", answer.length)
    return content


def _explain_failure(url: str, reason: str) -> str:
    return f"{url}: cannot be downloaded ({reason}); check the URL, or download the file yourself and name its path."


def _explain_size(source: str) -> str:
    return f"{source}: is larger than {MAX_BYTES // 2**20} MiB; expected a table with one row per release."

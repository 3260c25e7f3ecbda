"""Reads the pages that an S3 server lists objects in: XML that anybody may have written, up to a number of entries.

The form is that of ListObjectsV2 (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from bench.store.listing import keep_possible_time

MAX_ENTRIES = 10_000
"""Of one page, for which 1,000 are asked."""
MAX_MARKS = 40 * MAX_ENTRIES
"""Of tags and of attributes, each of which takes far more memory than its two characters; an entry has 20 at most."""


class ForeignPageError(Exception):
    """What a server answered is no page of a listing."""


class UnfinishedPageError(ForeignPageError):
    """A page says that more follows, and not with what it is asked for."""


class ListedEntry(NamedTuple):
    """An object as the page has it; `key` is the whole one, with the prefix of the store."""

    key: str
    num_bytes: int | None
    """None where the page has no number of bytes."""
    tag: str
    modified_at: datetime | None
    """None where the page has no time that can be true."""


@dataclass(frozen=True, kw_only=True)
class ListingPage:
    """One page: its objects, its folders (with a slash at the end), and what the next one is asked for with."""

    entries: list[ListedEntry]
    folders: list[str]
    next_token: str
    """Empty: there is no next page."""


def parse_page(body: bytes) -> ListingPage:
    """Return what a page lists; raise ForeignPageError where it is none, such as a web page, or has no way on."""
    root = _parse(body)
    namespace, _, name = root.tag.rpartition("}")
    namespace = f"{namespace}}}" if namespace else ""
    contents, prefixes = root.findall(f"{namespace}Contents"), root.findall(f"{namespace}CommonPrefixes")
    if name != "ListBucketResult" or len(contents) + len(prefixes) > MAX_ENTRIES:
        raise ForeignPageError
    is_encoded = root.findtext(f"{namespace}EncodingType") == "url"
    said_token = root.findtext(f"{namespace}NextContinuationToken", "")
    said_truncated = root.findtext(f"{namespace}IsTruncated", "").strip().lower()
    is_truncated = said_truncated in ("true", "1") or (not said_truncated and bool(said_token))
    next_token = said_token if is_truncated else ""
    if is_truncated and not next_token:  # to end here would take the rest as not there
        raise UnfinishedPageError
    decode: Callable[[str], str] = unquote_plus if is_encoded else str
    return ListingPage(
        entries=[_read_entry(found, namespace, decode) for found in contents],
        folders=[decode(found.findtext(f"{namespace}Prefix", "")) for found in prefixes],
        next_token=next_token,
    )


def _parse(body: bytes) -> ElementTree.Element:
    """Return the root of a page; no page of S3 has a document type, in which entities could grow, or is in UTF-16."""
    if b"<!DOCTYPE" in body or b"\0" in body or max(body.count(b"<"), body.count(b"=")) > MAX_MARKS:
        raise ForeignPageError
    try:
        return ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError, LookupError):  # no XML, or of an encoding that is not known
        raise ForeignPageError from None


def _read_entry(found: ElementTree.Element, namespace: str, decode: Callable[[str], str]) -> ListedEntry:
    read = found.findtext
    return ListedEntry(
        decode(read(f"{namespace}Key", "")),
        _read_size(read(f"{namespace}Size", "")),
        read(f"{namespace}ETag", ""),
        _read_time(read(f"{namespace}LastModified", "")),
    )


def _read_size(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 30 else None


def _read_time(text: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(text)
        in_utc = read if read.tzinfo is UTC else read.replace(tzinfo=read.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return keep_possible_time(in_utc)

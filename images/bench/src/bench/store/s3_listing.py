"""Lists an S3 bucket by boto3, where the store library cannot: keys that no path of its own can have.

A prefix that ends in a slash, and a name joined to it by another one, make a key with `//`. The store library refuses
the whole listing for one such key (https://docs.rs/object_store/latest/object_store/path/struct.Path.html): anybody who
may write one object would keep all others from being read.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from bench.store.keys import find_key_problem
from bench.store.listing import StoredObject
from bench.store.store_errors import FOREIGN_LISTING, StoreError, StoreUnreachable, explain_error, is_transient

if TYPE_CHECKING:
    from botocore.client import BaseClient

PAGE_SIZE = 1000
MAX_PAGES = 20_000
"""Twenty million keys, as many as a listing of the store library may have: more is a server that makes keys up."""
ENDLESS = "its listing does not end; is the server one that lists by pages?"
MAX_FOLDERS = 1_000_000
"""Runs of one store, of which the names are kept: 100 MB."""

ALWAYS_THERE = {"Name", "KeyCount", "MaxKeys", "IsTruncated"}
"""What S3 says of each page (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html); a page of XHTML,
and any other XML, has none of it."""


ELSEWHERE = (
    "{place} sends requests elsewhere; name the server itself as the endpoint, and the bucket's region in "
    "AWS_DEFAULT_REGION"
)


def _read_status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


class S3Listing:
    """The listings of one bucket below one prefix; keys are relative to it. Errors are StoreError, without the URL."""

    def __init__(self, client: "BaseClient", bucket: str, prefix: str, place: str) -> None:
        self._client = client
        self._bucket = bucket
        self._root = f"{prefix}/" if prefix else ""
        self._place = place

    def list_objects(self, folder: str, after: str | None = None) -> Iterator[StoredObject]:
        """Yield what is below `folder` ('': all), behind the key `after`; what is no key of ours has its problem."""
        for page in self._read_pages(folder, {"StartAfter": self._root + after} if after else {}):
            yield from map(self._describe, page.get("Contents", []))

    def list_folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly in `folder`, whatever characters they have."""
        names: list[str] = []
        for page in self._read_pages(folder, {"Delimiter": "/"}):
            prefixes = (str(found.get("Prefix", "")) for found in page.get("CommonPrefixes", []))
            names += [prefix.removesuffix("/").rpartition("/")[2] for prefix in prefixes]
            if len(names) > MAX_FOLDERS:
                raise StoreError(ENDLESS)
        return names

    def check(self) -> None:
        """Raise StoreError where the server answers a listing with anything else, such as a page of HTML.

        The store library takes such an answer for an empty listing. Other errors are those of the calls that follow.
        """
        with suppress(ClientError, BotoCoreError):
            self._ask({"Prefix": self._root, "MaxKeys": 1})

    def _read_pages(self, folder: str, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
        asked = {"Prefix": self._root + (f"{folder}/" if folder else ""), "MaxKeys": PAGE_SIZE, **options}
        tokens = set[str]()
        for _ in range(MAX_PAGES):
            page = self._read_page(asked)
            yield page
            token = str(page.get("NextContinuationToken", ""))
            if not page.get("IsTruncated") or not token:
                return
            if token in tokens:
                break
            tokens.add(token)
            asked["ContinuationToken"] = token
        raise StoreError(ENDLESS)

    def _read_page(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._ask(asked)
        except ClientError as error:
            status = _read_status(error)
            text = f"non-2xx status code: {status}: <Code>{error.response.get('Error', {}).get('Code', '')}</Code>"
            reason = explain_error(text, self._place, "make it") or f"{self._place} answers a listing with {status}"
            raise (StoreUnreachable if is_transient(text) else StoreError)(reason) from None
        except BotoCoreError as error:
            raise StoreUnreachable(f"{self._place} cannot be reached ({type(error).__name__})") from None

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            page: dict[str, Any] = self._client.list_objects_v2(Bucket=self._bucket, **asked)  # type: ignore[attr-defined]
        except (ResponseParserError, ValueError, TypeError, AttributeError, LookupError):  # no XML, or no listing's
            raise StoreError(FOREIGN_LISTING.format(place=self._place)) from None
        except ClientError as error:
            if 300 <= _read_status(error) < 400:
                raise StoreError(ELSEWHERE.format(place=self._place)) from None
            raise
        if not page.keys() & ALWAYS_THERE:
            raise StoreError(FOREIGN_LISTING.format(place=self._place))
        return page

    def _describe(self, found: dict[str, Any]) -> StoredObject:
        key, size = str(found.get("Key", "")).removeprefix(self._root), int(found.get("Size", 0))
        modified_at = found.get("LastModified") or datetime.fromtimestamp(0, UTC)
        return StoredObject(
            key=key,
            num_bytes=size,
            version=found.get("ETag") or f"{modified_at.isoformat()}-{size}",
            modified_at=modified_at,
            problem=find_key_problem(key),
        )

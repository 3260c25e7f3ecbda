"""Lists an S3 bucket page by page: any key that a bucket can have, and no more of a page than one can be long.

A prefix that ends in a slash, and a name joined to it by another one, make a key with `//`. The store library refuses
the whole listing for one such key (https://docs.rs/object_store/latest/object_store/path/struct.Path.html): anybody who
may write one object would keep all others from being read.
"""

from collections.abc import Iterator

from bench.store.keys import find_key_problem
from bench.store.listing import MAX_OBJECT_BYTES, StoredObject, make_version
from bench.store.s3_pages import ForeignPageError, ListedEntry, ListingPage, UnfinishedPageError, parse_page
from bench.store.s3_requests import S3Requests
from bench.store.store_errors import ENDLESS, FOREIGN_LISTING, NO_WAY_ON, StoreError

PAGE_SIZE = 1000
MAX_PAGES = 20_000
"""Twenty million keys, as many as a listing of the store library may have: more is a server that makes keys up."""
MAX_FOLDERS = 1_000_000
"""Runs of one store, of which the names are kept: 100 MB."""


class S3Listing:
    """The listings of one bucket below one prefix; keys are relative to it. Errors are StoreError, without the URL."""

    def __init__(self, requests: S3Requests, prefix: str) -> None:
        self._requests = requests
        self._root = f"{prefix}/" if prefix else ""

    def list_pages(self, folder: str) -> Iterator[list[StoredObject]]:
        """Yield what is below `folder` ('': all), page by page, none empty; what is no key of ours has its problem."""
        for page in self._read_pages(folder, {}):
            described = [self._describe(entry) for entry in page.entries if not _is_folder_mark(entry)]
            if described:
                yield described

    def list_folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly in `folder`, whatever characters they have."""
        names: list[str] = []
        for page in self._read_pages(folder, {"delimiter": "/"}):
            names += [prefix.removesuffix("/").rpartition("/")[2] for prefix in page.folders]
            if len(names) > MAX_FOLDERS:
                raise StoreError(ENDLESS)
        return names

    def _read_pages(self, folder: str, options: dict[str, str]) -> Iterator[ListingPage]:
        asked = {
            "list-type": "2",
            "encoding-type": "url",  # XML has no way to write some characters that keys can have
            "max-keys": str(PAGE_SIZE),
            "prefix": self._root + (f"{folder}/" if folder else ""),
            **options,
        }
        tokens = set[str]()
        connection = self._requests.connect()
        try:
            for _ in range(MAX_PAGES):
                try:
                    page = parse_page(connection.get(asked))
                except UnfinishedPageError:
                    raise StoreError(NO_WAY_ON.format(place=self._requests.endpoint)) from None
                except ForeignPageError:
                    raise StoreError(FOREIGN_LISTING.format(place=self._requests.endpoint)) from None
                if not page.next_token or page.next_token in tokens:
                    yield page
                    break
                tokens.add(page.next_token)
                asked["continuation-token"] = page.next_token
                connection.send(asked)  # the server works while this page is read
                yield page
            if not page.next_token:
                return
        finally:
            connection.close()
        raise StoreError(ENDLESS)

    def _describe(self, entry: ListedEntry) -> StoredObject:
        key, size = entry.key.removeprefix(self._root), entry.num_bytes
        is_possible = size is not None and size <= MAX_OBJECT_BYTES
        return StoredObject(
            key=key,
            num_bytes=size if size is not None and is_possible else 0,
            version=entry.tag or make_version(entry.modified_at, size),
            modified_at=entry.modified_at,
            problem=find_key_problem(key) or ("" if is_possible else f"is listed with {_show_size(size)} bytes"),
        )


def _show_size(size: int | None) -> str:
    return "no number of" if size is None else f"{size:,}"


def _is_folder_mark(entry: ListedEntry) -> bool:
    """Return whether an object only stands for a folder, as the consoles of S3 make them."""
    return entry.key.endswith("/") and entry.num_bytes == 0

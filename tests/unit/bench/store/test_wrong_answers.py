"""Answers that are not the object: they are told by their ETag and asked for again, also where ETags are no digests."""

import hashlib
from collections.abc import Callable, Container, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from obstore.exceptions import BaseError

from bench.store import Store, StoreUnreachable
from bench.store.backend import Backend
from bench.store.entity_tags import MAX_MISFITS, EntityTags
from bench.store.object_reading import MAX_READS
from faulty_s3_server import Fault, FaultyS3Server
from s3_server import S3Server

KEY = "runs/r1/run.json"
DATA = b'{"a": "document"}'
DIGEST = hashlib.md5(DATA).hexdigest()


def inject(*faults: Fault | None, method: str = "GET") -> Callable[[str, str], Fault | None]:
    """Return a choice that gives the first requests with this method these faults, and the others none."""
    left = list(faults)
    return lambda found, path: left.pop(0) if found == method and left else None


@pytest.mark.parametrize("fault", ["cut", "shortened", "lost-answer"])
def test_a_wrong_answer_is_asked_for_again(faulty_s3_server: FaultyS3Server, s3_server: S3Server, fault: Fault) -> None:
    store = Store.open(f"s3://{s3_server.bucket}")
    store.put(KEY, DATA)
    faulty_s3_server.choose_fault = inject(fault)
    assert store.get(KEY) == DATA
    assert faulty_s3_server.faults[fault] == 1


def test_an_answer_that_is_cut_again_and_again_is_the_stores_error(
    faulty_s3_server: FaultyS3Server, s3_server: S3Server
) -> None:
    store = Store.open(f"s3://{s3_server.bucket}")
    store.put(KEY, DATA)
    faulty_s3_server.choose_fault = lambda method, path: "cut" if method == "GET" else None
    with pytest.raises(StoreUnreachable, match="cannot be reached"):
        store.get(KEY)


class CutLister:
    """Lists keys as obstore does, two on a page; the answers whose numbers are in `cut` end in the middle."""

    def __init__(self, keys: Sequence[str], cut: Container[int]) -> None:
        self._keys, self._cut, self._num_answers = keys, cut, 0

    def list(self, prefix: str, *, offset: str | None, chunk_size: int) -> Iterator[list[dict[str, Any]]]:
        left = [key for key in self._keys if key > (offset or "")]
        for start in range(0, len(left), 2):
            self._num_answers += 1
            if self._num_answers in self._cut:
                raise BaseError('Generic S3 error: HTTP error: request or response body error: "IncompleteBody"')
            yield [_describe(key) for key in left[start : start + 2]]


def _describe(key: str) -> dict[str, Any]:
    return {"path": key, "size": 2, "e_tag": "1", "last_modified": datetime(2026, 11, 22, tzinfo=UTC)}


@pytest.mark.parametrize("cut", [(), (1,), (2, 3), (1, 3, 5), (3, 4, 5, 6)])
def test_a_listing_whose_pages_are_cut_has_every_key_once(cut: tuple[int, ...]) -> None:
    keys = [f"runs/r1/results/c/{number}-a.json" for number in range(1, 6)]
    lister: Any = CutLister(keys, cut)
    store = Store(url="s3://b", backend=Backend(place="http://host", long_retries=lister, short_retries=lister))
    assert list(store.list_keys("runs/r1")) == keys


def test_a_listing_that_is_cut_again_and_again_is_the_stores_error() -> None:
    lister: Any = CutLister(["runs/r1/run.json"], range(1, 100))
    store = Store(url="s3://b", backend=Backend(place="http://host", long_retries=lister, short_retries=lister))
    with pytest.raises(StoreUnreachable, match="http://host cannot be reached"):
        list(store.list_keys("runs/r1"))


def test_an_etag_that_is_no_digest_says_nothing() -> None:
    tags = EntityTags()
    for tag in (None, '"0x8DB2F4"', f'"{DIGEST}-2"', f'"{DIGEST}"', DIGEST):
        assert tags.fit(tag, DATA)
    assert not tags.fit(f'"{DIGEST}"', DATA[:-1])


def test_etags_that_never_fit_are_no_longer_asked() -> None:
    # As in a bucket with keys of KMS: each looks like a digest and is none.
    tags = EntityTags()
    for _ in range(MAX_MISFITS + 1):
        assert not tags.fit("0" * 32, DATA)
        tags.note_misfit()
    assert tags.fit("0" * 32, DATA)


def test_answers_that_all_differ_are_the_stores_error(
    faulty_s3_server: FaultyS3Server, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(f"s3://{s3_server.bucket}")
    store.put(KEY, DATA)
    lengths = iter(range(MAX_READS))
    monkeypatch.setattr("faulty_s3_server.shorten", lambda body: body[: next(lengths)])
    faulty_s3_server.choose_fault = lambda method, path: "shortened" if method == "GET" else None
    with pytest.raises(
        StoreUnreachable, match=f"store s3://.*answers for '{KEY}' differ from each other and from their ETag"
    ):
        store.get(KEY)

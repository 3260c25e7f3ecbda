"""Tells by its ETag whether an object's bytes are those that the server meant to send.

On S3 the ETag of an object that was put in one request is its MD5 digest, unless it is encrypted with a key of the
user's or of KMS (https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html): then it looks like one and is none.
"""

import hashlib
import re
from dataclasses import dataclass

DIGEST = re.compile(r'"?(?P<digest>[0-9a-f]{32})"?')
# In a bucket whose ETags are no digests every object is read twice until so many more misfitted than fitted.
MAX_MISFITS = 8


@dataclass
class EntityTags:
    """What is known of the ETags of one store; used from several threads, so its counts are about right."""

    num_fitting: int = 0
    num_misfits: int = 0

    def fit(self, tag: str | None, data: bytes) -> bool:
        """Return whether `data` can be the object with this ETag; True where the ETag says nothing of the bytes."""
        is_digest = find_digest(tag) is not None and self.num_misfits <= self.num_fitting + MAX_MISFITS
        if is_digest and not is_digest_of(tag, data):
            return False
        self.num_fitting += is_digest
        return True

    def note_misfit(self) -> None:
        """Note that the ETag of an object is no digest of it."""
        self.num_misfits += 1


def find_digest(tag: str | None) -> str | None:
    """Return the digest that an ETag looks like, 32 hex digits; None for any other."""
    match = DIGEST.fullmatch(tag or "")
    return None if match is None else match["digest"]


def is_digest_of(tag: str | None, data: bytes) -> bool:
    """Return whether an ETag is the MD5 digest of `data`."""
    return find_digest(tag) == hashlib.md5(data, usedforsecurity=False).hexdigest()

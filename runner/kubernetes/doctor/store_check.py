"""The check of the store: that it can be written from this machine."""

from bench.store import BUCKET_URLS, Store, StoreError
from runner.kubernetes.doctor.findings import Finding


def check_store(url: str | None) -> Finding:
    """Find whether the store can be written, from this machine."""
    if url is None:
        message = "not checked: no --store was given"
        return Finding(check="store", state="warning", message=message, hint=f"add --store: {BUCKET_URLS}")
    if url.startswith("file:"):
        message = f"{url}: the cells on a cluster do not see this machine's directories"
        return Finding(check="store", state="failed", message=message, hint=f"name a bucket, {BUCKET_URLS}")
    try:
        Store.open(url).check_writable()
    except StoreError as error:
        message, _, hint = str(error).partition("; ")
        return Finding(check="store", state="failed", message=message, hint=hint)
    return Finding(check="store", state="ok", message=f"{url} can be written from here; cells have their own identity")

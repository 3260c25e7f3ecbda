"""The checks of the store: that it can be written from this machine, and that the cells look for it at a server too."""

import os
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from bench.store import Store, StoreError
from bench.store_urls import BUCKET_URLS
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.doctor.context import DoctorContext
from runner.kubernetes.doctor.findings import Finding, explain_unchecked, find_object
from runner.profiles.model import Profile
from runner.terminal_text import hide_credentials

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables that lead S3 clients elsewhere than to Amazon, the first one first
(https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html)."""
CELLS_STORE = "store of the cells"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def check_store(url: str | None, cells_environment: Mapping[str, str]) -> Finding:
    """Check whether this machine can write to the store; one in a directory fails, as a cluster's cells do not see it.

    `url`: None if no store was given. `cells_environment`: the environment variables that the profile gives to cells.
    """
    if url is None:
        message = "not checked: no --store was given"
        return Finding(check="store", state="warning", message=message, hint=f"add --store: {BUCKET_URLS}")
    if url.startswith("file:"):
        message = f"{url}: the cells on a cluster do not see this machine's directories"
        return Finding(check="store", state="failed", message=message, hint=f"name a bucket, {BUCKET_URLS}")
    try:
        store = Store.open(url)
        store.check_writable()
        is_first_told = store.tells_first_writer()
    except StoreError as error:
        message, _, hint = str(error).partition("; ")
        hint = "; ".join(filter(None, (hint, _name_cells_server(url, os.environ, cells_environment))))
        return Finding(check="store", state="failed", message=message, hint=hint)
    if not is_first_told:
        message = f"{url} can be written from here; its server ignores If-None-Match"
        hint = "start no two runners under one --run-id: the second would not be stopped"
        return Finding(check="store", state="warning", message=message, hint=hint)
    return Finding(check="store", state="ok", message=f"{url} can be written from here; cells have their own identity")


def _name_cells_server(url: str, shell: Mapping[str, str], cells_environment: Mapping[str, str]) -> str:
    """Return how to lead this shell to the S3 server that only the cells are told of; empty if that is not so."""
    given = next((name for name in ENDPOINTS if cells_environment.get(name)), None)
    if given is None or not url.startswith("s3:") or any(shell.get(name) for name in ENDPOINTS):
        return ""
    return (
        f"the cells find the server by {given}={cells_environment[given]}, as the profile says, and this shell does "
        f"not: export {given}, with an address that this machine reaches"
    )


def check_cells_endpoint(context: DoctorContext, url: str | None) -> Finding | None:
    """Find whether the cells know of an S3 server that this shell names; None if nothing speaks against it."""
    if url is None or not url.startswith("s3:"):
        return None
    if compare_endpoints(os.environ, context.profile, ()) is None:
        return None  # without the right to read the Secret
    try:
        return compare_endpoints(os.environ, context.profile, _list_secret_keys(context))
    except ApiError as error:
        return explain_unchecked(CELLS_STORE, error)


def compare_endpoints(shell: Mapping[str, str], profile: Profile, secret_keys: Collection[str]) -> Finding | None:
    """Return what is wrong with the cells' endpoint, given this shell's variables and the keys of the store's Secret.

    The URLs themselves may differ: a server can have one address inside the cluster and another one outside.
    """
    own = next((shell[name] for name in ENDPOINTS if shell.get(name)), None)
    given = next((profile.environment[name] for name in ENDPOINTS if profile.environment.get(name)), None)
    if own is not None and given is None and not set(ENDPOINTS) & set(secret_keys):
        message = (
            f"this shell finds the S3 server by AWS_ENDPOINT_URL={hide_credentials(own)}, and the cells would ask "
            "Amazon's"
        )
        hint = "write `environment: {AWS_ENDPOINT_URL: URL}` in the profile, with an address that pods reach"
        return Finding(check=CELLS_STORE, state="failed", message=message, hint=hint)
    if given is not None and urlsplit(given).hostname in LOOPBACK:
        message = (
            f"AWS_ENDPOINT_URL={hide_credentials(given)} in the profile's `environment` is the pod itself to each cell"
        )
        hint = "name an address of the server that pods reach"
        return Finding(check=CELLS_STORE, state="failed", message=message, hint=hint)
    return None


def _list_secret_keys(context: DoctorContext) -> Collection[str]:
    """Return the names of the variables in the store's Secret; empty if there is none."""
    name = context.profile.store_secret
    path = f"/api/v1/namespaces/{context.namespace}/secrets/{name}"
    secret = find_object(context.connection, path) if name else None
    return (secret or {}).get("data") or {}

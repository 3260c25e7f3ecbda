"""The store of runs and results: one interface to directories (file://) and buckets (s3://, gs://, az://)."""

from bench.store.directory import find_directory as find_directory
from bench.store.errors import KeyMissing as KeyMissing
from bench.store.errors import StoreError as StoreError
from bench.store.errors import StoreUnreachable as StoreUnreachable
from bench.store.errors import UnreadableObject as UnreadableObject
from bench.store.errors import explain_os_error as explain_os_error
from bench.store.keys import *  # noqa: F403  (the layout)
from bench.store.store import Store as Store

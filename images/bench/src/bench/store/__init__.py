"""The store of runs and results: one interface to directories (file://) and buckets (s3://, gs://, az://)."""

from bench.store.directory import find_directory as find_directory
from bench.store.errors import *  # noqa: F403
from bench.store.keys import *  # noqa: F403  (the layout)
from bench.store.store import Store as Store

"""The store of runs and results: one interface to directories (file://) and buckets (s3://, gs://, az://)."""

from bench.store.backend import BUCKET_URLS
from bench.store.keys import (
    LATEST_REPORT_KEY,
    LATEST_RUN_KEY,
    ResultKey,
    cancelled_key,
    cancelled_prefix,
    interrupted_key,
    node_fault_key,
    node_faults_prefix,
    parse_node_fault_key,
    parse_placement_key,
    parse_result_key,
    placement_key,
    placements_prefix,
    raw_removal_key,
    raw_removals_prefix,
    report_key,
    result_key,
    results_prefix,
    run_key,
)
from bench.store.listing import StoredObject
from bench.store.store import Store
from bench.store.store_errors import KeyMissing, StoreError, StoreUnreachable

__all__ = [
    "BUCKET_URLS",
    "LATEST_REPORT_KEY",
    "LATEST_RUN_KEY",
    "KeyMissing",
    "ResultKey",
    "Store",
    "StoreError",
    "StoreUnreachable",
    "StoredObject",
    "cancelled_key",
    "cancelled_prefix",
    "interrupted_key",
    "node_fault_key",
    "node_faults_prefix",
    "parse_node_fault_key",
    "parse_placement_key",
    "parse_result_key",
    "placement_key",
    "placements_prefix",
    "raw_removal_key",
    "raw_removals_prefix",
    "report_key",
    "result_key",
    "results_prefix",
    "run_key",
]

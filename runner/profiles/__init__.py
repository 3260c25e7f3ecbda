"""Profiles: what a cluster offers to cells."""

from pathlib import Path

PROFILE_FOLDER = Path(__file__).parent
BUILTIN_PROFILES = tuple(sorted(path.stem for path in PROFILE_FOLDER.glob("[a-z]*.yaml")))

IN_CLUSTER = "in-cluster"
"""What stands in place of a context for the cluster that a process is a pod of, in options and runs."""
BUCKET_URLS = "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
"""All that a cluster's cells can write to, as help and messages name it."""

"""How the URLs of stores are written: what help and messages name, without loading `bench.store`."""

BUCKET_URLS = "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
"""All that a cluster's cells can write to."""

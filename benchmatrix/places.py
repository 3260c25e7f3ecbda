"""Define where results are stored unless the caller names a store."""

DEFAULT_STORE = "file://results"
"""The store that `benchmatrix run` writes to: the folder `results` of the working directory."""

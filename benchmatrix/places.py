"""Where results are when nobody says it."""

DEFAULT_STORE = "file://results"
"""The store that `benchmatrix run` writes to: the folder `results` of the working directory."""

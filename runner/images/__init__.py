"""The container images of this checkout."""

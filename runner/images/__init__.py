"""The container images of benchmatrix."""

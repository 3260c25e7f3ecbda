"""The manifests of Jobs and of the set-up."""

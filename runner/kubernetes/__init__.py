"""Runs on Kubernetes: the only part of the tool that imports the package `kubernetes`."""

"""The word that stands in place of a context for the cluster that a process is a pod of; free of imports."""

IN_CLUSTER = "in-cluster"
"""As runs record it (`bench.schema.Cluster`), options take it, and shells complete it."""

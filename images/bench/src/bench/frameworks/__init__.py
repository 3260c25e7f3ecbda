"""The frameworks: a Cell in, a Workload for the harness out. One file per framework."""

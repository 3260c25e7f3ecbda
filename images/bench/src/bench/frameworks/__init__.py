"""The frameworks, each of which builds the workload of a cell for the harness."""

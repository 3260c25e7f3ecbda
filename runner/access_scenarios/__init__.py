"""Read scenarios of access from YAML files of users, with the figures of runs and the prices that they name."""

"""YAML files that users write, with the place of every value."""

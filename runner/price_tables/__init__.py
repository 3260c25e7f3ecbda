"""Price tables: reading them from YAML, with file, line and key of whatever is wrong."""

"""The statuses of planned repeats of which no record is read; those of records are `bench.schema.Status`."""

MISSING = "missing"
"""There is no record."""
UNREADABLE = "unreadable"
"""The store has a record, and does not give it: how the repeat ended is not known."""
WITHOUT_RECORD = (MISSING, UNREADABLE)

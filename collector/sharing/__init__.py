"""What tenants of one device do to each other: each against the same cell alone, and all of them together."""

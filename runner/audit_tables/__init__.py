"""Read tables that are audited from YAML and CSV files of users."""

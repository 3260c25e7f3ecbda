"""The tables that people read, one module each; `collector.report.tables` says where each of them stands."""

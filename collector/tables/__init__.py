"""The tables that people read, one module each; `collector.report.sections` says where each of them stands."""

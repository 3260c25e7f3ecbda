"""What a run says, in sentences made from its data, and what it does not say: see docs/report.md."""

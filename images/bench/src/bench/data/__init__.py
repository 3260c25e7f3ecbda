"""Input pipelines for real data, one module per framework; each yields batches on the host."""

"""Real data: a Cell with a `data_dir` in, batches on the host out. One module per framework: its own input pipeline."""

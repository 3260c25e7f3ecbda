"""What the commands have in common that read results: with them, the part of the runner that knows the collector."""

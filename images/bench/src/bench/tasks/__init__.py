"""What a step of a model is, apart from any device: inputs, losses and optimisers. One folder per dialect."""

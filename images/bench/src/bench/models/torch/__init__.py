"""Models as torch.nn.Module: a Cell in, the module out."""

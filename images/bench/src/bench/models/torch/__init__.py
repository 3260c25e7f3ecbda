"""The models in PyTorch, each as a torch.nn.Module."""

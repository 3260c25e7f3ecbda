"""Compute who gets how much of which GPUs at what price: a lab's users, alternatives and policies, simulated."""

"""Profiles: what a cluster offers to cells."""

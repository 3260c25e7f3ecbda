"""Removes raw results from a store by a policy of its user, once the data set has their rows."""

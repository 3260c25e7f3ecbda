"""Forecasts of series of dated values, such as the memory of GPUs, and of what models need of it."""

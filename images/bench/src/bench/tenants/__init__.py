"""Cells with several tenants: how their processes meet, step in one window, and become one Result."""

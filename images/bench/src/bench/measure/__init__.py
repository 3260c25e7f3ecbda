"""Timing steps, and what is measured beside them: profiles, rooflines, calibration."""

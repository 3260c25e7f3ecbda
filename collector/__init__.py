"""Collector: results in the store come in; tables, plots, forecasts and one HTML report go out."""

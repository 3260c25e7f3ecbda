"""Forecasts of series of dated values: three candidates, checked by a backtest."""

"""Plots: tables of the collector come in, Altair charts go out, with numbers in the units of people."""

"""The collector: loads results from a store and makes tables, comparisons, forecasts and a report of them."""

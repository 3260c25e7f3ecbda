"""Results in the store, loaded into data frames and exported."""

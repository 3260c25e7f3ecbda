"""The data set of a store: what its JSON documents say, as Parquet files in `tables/`, brought up to date on demand."""

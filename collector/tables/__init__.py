"""Tables: the summary of cells, and the tables that people read."""

"""Compare one side with another, A with B, cell by cell: two runs, or two selections of what was measured."""

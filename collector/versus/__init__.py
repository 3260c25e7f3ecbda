"""Compare one side with another, A with B, cell by cell: two runs, or two selections of what was measured.

`collector.comparisons` is another thing: the pairs within a run that differ in one axis, for the tables of its report.
"""

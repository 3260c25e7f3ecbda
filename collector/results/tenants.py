"""The columns of the tenants of repeats, and the tenants of the attempts that count, from the data set."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from collector.results.attempts import IntArray
from collector.results.dataset.columns import TENANTS, make_schema
from collector.results.dataset.selection import SelectedRows
from collector.results.dataset.update import RunTable
from collector.results.frames import TENANT_COLUMNS
from collector.results.repeats import convert_column
from collector.results.steps import name_documents


def read_tenants(results: RunTable, attempts: SelectedRows, counted: IntArray) -> pa.Table:
    """Return the rows of the table of tenants of the attempts that count, in the order of the plan.

    `counted`: rows of `attempts`. A column `place` says which of the counted attempts a row is of, from 0.
    """
    has_tenants = {content.part.part_id for content in results.contents if TENANTS in content.other_tables}
    found = [make_schema(TENANTS).empty_table()]
    places = [pa.array([], pa.int64())]
    if not has_tenants:  # as in most runs, whose documents are not named then
        return found[0].append_column("place", places[0])
    documents = name_documents(attempts.rows.select(["key", "object_version"]).take(counted)).combine_chunks()
    numbers = attempts.part_numbers[counted]
    for number in np.unique(numbers):
        part = attempts.parts[int(number)]
        if part.part_id in has_tenants:
            rows = part.read(TENANTS)
            # An object that two collectors read has rows in two parts: those beside its attempt count.
            own = pc.index_in(
                name_documents(rows),
                value_set=pc.if_else(pa.array(numbers == number), documents, pa.scalar(None, pa.string())),
            )
            found.append(rows.filter(own.is_valid()))
            places += own.drop_null().cast(pa.int64()).chunks
    rows = pa.concat_tables(found).append_column("place", pa.chunked_array(places))
    return rows.sort_by([("place", "ascending"), ("tenant", "ascending")])


def tabulate_tenants(rows: pa.Table) -> pd.DataFrame:
    """Return rows of `read_tenants` as a data frame with the columns TENANT_COLUMNS."""
    return pd.DataFrame({name: convert_column(rows[name], dtype) for name, dtype in TENANT_COLUMNS.items()})

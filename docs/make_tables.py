"""Write what is made from the code: models, tables, rules of answers, the reference of commands and documents, prices.

`python docs/make_tables.py` writes them; with `--check` it exits with 1 where they are stale.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from bench.registry import FRAMEWORKS, MODELS
from bench.schema import (
    Cell,
    Environment,
    Failure,
    Memory,
    Node,
    Phases,
    Placement,
    Result,
    Roofline,
    Samples,
    SustainedRun,
    Tenancy,
    TenantRecord,
)
from collector.results.frames import (
    ATTEMPTS,
    MEANINGS,
    RESULT_COLUMNS,
    SAMPLE_COLUMNS,
    TABLE_COLUMNS,
    TENANT_COLUMNS,
    Columns,
)
from command_reference import describe_commands
from document_reference import describe_documents
from t4_budget import describe_sums, list_budget_rows

FOLDER = Path(__file__).parent
MODELS_PAGE, TABLES_PAGE = FOLDER / "models.md", FOLDER / "tables.md"
COMMANDS_PAGE, DOCUMENTS_PAGE = FOLDER / "reference" / "cli.md", FOLDER / "reference" / "documents.md"
T4_PAGE = FOLDER / "results" / "reproduce-on-t4.md"
END = "<!-- end -->"
DATA = {"cifar10": "CIFAR-10's binary files", "image-folders": "the image folders of CycleGAN's data sets", None: ""}
MODEL_COLUMNS = (
    "model",
    "what it is",
    "task",
    "default `input_size`",
    "smallest",
    "default `num_classes`",
    "`data_dir` holds",
    "parameters",
    "multiply-adds, 10^9",
    "source",
)
FRAMEWORK_COLUMNS = ("framework", "name", "package", "modes", "devices", "definitions", "reference", "image")

COLUMN_COLUMNS = ("column", "type", "unit", "meaning")
TYPE_NAMES = {
    "str": "text",
    "int64": "integer",
    "Int64": "integer or missing",
    "float64": "float",
    "boolean": "boolean or missing",
    "datetime64[us, UTC]": "time",
    "list[float64]": "list of floats",
    "category": "text",
    "records": "list of records",
}


# The first that has the field says what it means: the columns have the names of the fields that they hold.
SOURCES: tuple[type[BaseModel], ...] = (
    *(Cell, Result, Phases, Memory, Roofline, Samples, SustainedRun, Node, Placement, Failure, Tenancy, TenantRecord),
)
ENVIRONMENT_FIELDS = ("num_threads", "hostname")
# By the end of the name, the longest first.
UNITS: Mapping[str, str] = {
    "samples_per_s": "samples/s",
    "flops_per_second": "FLOP/s",
    "bytes_per_second": "bytes/s",
    "flops_per_step": "FLOP",
    "bytes_per_step": "bytes",
    "seconds_per_step": "s",
    "seconds": "s",
    "bytes": "bytes",
    "joules": "J",
    "watts": "W",
    "mhz": "MHz",
    "celsius": "°C",
    "cores": "cores",
    "share": "share, 1 is all",
}


def describe_meaning(column: str) -> str:
    """Return what a column means, in one line."""
    if column in MEANINGS:
        return MEANINGS[column]
    sources = (Environment,) if column in ENVIRONMENT_FIELDS else SOURCES
    for source in sources:
        if column in source.model_fields and (text := source.model_fields[column].description):
            return " ".join(text.split()).replace("null:", "missing:").replace("None:", "missing:")
    raise KeyError(f"column '{column}': nothing says what it means; add it to MEANINGS in collector.results.frames")


def find_unit(column: str, dtype: str) -> str:
    """Return the unit of a column's numbers; empty for what has none."""
    if dtype in ("str", "boolean") or dtype.startswith("datetime"):
        return ""
    if column.startswith("share_of"):
        return UNITS["share"]
    return next((unit for end, unit in UNITS.items() if column.endswith(end)), "")


def list_models() -> Iterator[tuple[str, ...]]:
    """Yield the cells of each model's row."""
    for name, spec in MODELS.items():
        size = (spec.input_size, spec.num_classes)
        reference = next(one for one in spec.references if (one.input_size, one.num_classes) == size)
        multiple = f", multiples of {spec.input_size_multiple}" if spec.input_size_multiple != 1 else ""
        yield (
            f"`{name}`",
            spec.description,
            spec.task,
            str(spec.input_size),
            f"{spec.min_input_size}{multiple}",
            str(spec.num_classes or "none"),
            DATA[spec.data],
            " + ".join(f"{number:,}" for number in reference.num_parameters),
            f"{reference.giga_macs:.4g}",
            reference.source,
        )


def list_frameworks() -> Iterator[tuple[str, ...]]:
    """Yield the cells of each framework's row."""
    for name, spec in FRAMEWORKS.items():
        yield (
            f"`{name}`",
            spec.label,
            f"`{spec.package}`",
            ", ".join(f"`{mode}`" for mode in spec.modes),
            ", ".join(f"`{device}`" for device in spec.devices),
            f"`{spec.dialect}`",
            f"`{spec.reference}`" if spec.reference else "",
            f"`images/{name}`",
        )


def make_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = list(columns)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def list_columns(columns: Columns) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each column's row."""
    for name, dtype in columns.items():
        yield f"`{name}`", TYPE_NAMES[dtype], find_unit(name, dtype), describe_meaning(name).replace("|", "\\|")


def make_models_page(page: str) -> str:
    """Return docs/models.md with both tables between their markers."""
    tables = {
        "models": make_table(MODEL_COLUMNS, list_models()),
        "frameworks": make_table(FRAMEWORK_COLUMNS, list_frameworks()),
    }
    return fill_markers(page, tables, "bench.registry")


def make_tables_page(page: str) -> str:
    """Return docs/tables.md with a table for each table of the data set and of an export between their markers."""
    found = {"results": RESULT_COLUMNS, "samples": SAMPLE_COLUMNS, "tenants": TENANT_COLUMNS}
    found |= {name: _drop_known(name, columns) for name, columns in TABLE_COLUMNS.items()}
    tables = {name: make_table(COLUMN_COLUMNS, list_columns(columns)) for name, columns in found.items()}
    return fill_markers(page, tables, "the code")


def make_t4_page(page: str) -> str:
    """Return docs/results/reproduce-on-t4.md with prices and sums between their markers."""
    parts = {"prices": make_table(("what", "per hour", "from"), list_budget_rows()), "sums": describe_sums()}
    return fill_markers(page, parts, "the price table")


def make_commands_page(page: str) -> str:
    """Return docs/reference/cli.md with all commands between the markers."""
    return fill_markers(page, {"commands": f"\n{describe_commands()}\n"}, "the command line")


def make_documents_page(page: str) -> str:
    """Return docs/reference/documents.md with all documents between the markers."""
    return fill_markers(page, {"documents": f"\n{describe_documents()}\n"}, "the schemas")


def fill_markers(page: str, tables: Mapping[str, str], source: str) -> str:
    for name, table in tables.items():
        begin = f"<!-- {name}: made by `make docs` from {source} -->"
        if page.count(begin) != 1:
            raise AssertionError(f"expected the line {begin} once")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{table}\n{END}{rest.partition(END)[2]}"
    return page


def _drop_known(table: str, columns: Columns) -> Columns:
    """Return the columns of a table of the data set that the results do not have under the same name."""
    return {name: dtype for name, dtype in columns.items() if table != ATTEMPTS or name not in RESULT_COLUMNS}


PAGES = {
    MODELS_PAGE: make_models_page,
    TABLES_PAGE: make_tables_page,
    T4_PAGE: make_t4_page,
    COMMANDS_PAGE: make_commands_page,
    DOCUMENTS_PAGE: make_documents_page,
}


def main() -> None:
    """Write the pages, or exit with 1 where `--check` finds one stale."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page is stale")
    is_check = parser.parse_args().check
    for path, make_page in PAGES.items():
        found = path.read_text(encoding="utf-8")
        made = make_page(found)
        if not is_check:
            path.write_text(made, encoding="utf-8")
        elif found != made:
            sys.exit(f"{path.name}: not in step with the code; run `make docs`")


if __name__ == "__main__":
    main()

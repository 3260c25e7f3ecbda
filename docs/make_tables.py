"""Write the tables of models and of frameworks in docs/models.md from `bench.registry`.

`python docs/make_tables.py` writes them; with `--check` it exits with 1 where they are stale.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.registry import FRAMEWORKS, MODELS

PAGE = Path(__file__).parent / "models.md"
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


def list_models() -> Iterator[tuple[str, ...]]:
    """Yield the cells of each model's row."""
    for name, spec in MODELS.items():
        reference = spec.find_reference()
        assert reference is not None  # of a complete entry; see list_gaps
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
    """Return a Markdown table."""
    header = list(columns)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def make_page(page: str) -> str:
    """Return `page` with both tables between their markers."""
    tables = {
        "models": make_table(MODEL_COLUMNS, list_models()),
        "frameworks": make_table(FRAMEWORK_COLUMNS, list_frameworks()),
    }
    for name, table in tables.items():
        begin = f"<!-- {name}: made by `make docs` from bench.registry -->"
        if page.count(begin) != 1:
            raise AssertionError(f"{PAGE.name}: expected the line {begin} once")
        page = re.sub(f"{re.escape(begin)}.*?{END}", f"{begin}\n{table}\n{END}", page, flags=re.DOTALL)
    return page


def main() -> None:
    """Write the page, or exit with 1 where `--check` finds it stale."""
    found = PAGE.read_text(encoding="utf-8")
    made = make_page(found)
    if "--check" in sys.argv[1:]:
        sys.exit(f"{PAGE.name}: not in step with bench.registry; run `make docs`" if found != made else 0)
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()

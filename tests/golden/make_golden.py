"""Write the golden files anew: `make golden`. Every line that changes is read in review, and said in docs/decisions."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import figures


def main() -> None:
    """Write a file for each run, and those of several runs together."""
    for path in figures.FOLDER.glob("*.csv"):
        path.unlink()
    for store, run_id in figures.list_runs():
        text = figures.write_rows(figures.compute_figures(store, run_id))
        (figures.FOLDER / figures.name_file(store, run_id)).write_text(text, encoding="utf-8")
    for name, tables in figures.compute_joint_figures():
        (figures.FOLDER / name).write_text(figures.write_rows(tables), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Interpreters for `--python` that write a prepared record at once, by a shell: they cost no start of Python."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.schema import Cell
from factories import make_result

REPEAT, RUN_ID, ATTEMPT = 987_654, "the-run-id", "the-attempt"


def make_writing_interpreter(folder: Path, cells: Sequence[Cell], *, log: Path) -> Path:
    """Return an executable in `folder` that writes an ok record for any of these cells, told apart by their batch.

    It is written beside its place and renamed, as a store does. `log` gets a line: run_id, cell_id, repeat.
    """
    cases = []
    for cell in cells:
        steps: dict[str, Any] = {
            "step_seconds": (0.1,) * cell.num_steps,
            "warmup_step_seconds": (0.1,) * cell.num_warmup_steps,
        }
        result = make_result(cell, run_id=RUN_ID, repeat=REPEAT, attempt=ATTEMPT, **steps)
        template = folder / f"record-{cell.batch_size}"
        template.write_bytes(result.to_json())
        cases.append(f"""*'"batch_size":{cell.batch_size},'*) cell={cell.cell_id} record={template};;""")
    path = folder / "python"
    path.write_text(f"""#!/bin/sh
case "$BENCH_CELL" in {" ".join(cases)} *) exit 9;; esac
echo $BENCH_RUN_ID $cell $BENCH_REPEAT >> {log}
place="${{BENCH_STORE#file://}}/runs/$BENCH_RUN_ID/results/$cell"
name="$BENCH_REPEAT-$BENCH_ATTEMPT.json"
mkdir -p "$place" || exit 8
sed -e "s/{REPEAT}/$BENCH_REPEAT/" -e "s/{RUN_ID}/$BENCH_RUN_ID/" -e "s/{ATTEMPT}/$BENCH_ATTEMPT/" $record \\
    > "$place/$name#1" && exec mv "$place/$name#1" "$place/$name"
rm -f "$place/$name#1"
exit 7
""")
    path.chmod(0o755)
    return path

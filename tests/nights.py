"""Stores with simulated nights of a matrix, for the tests of `watch`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np

from bench.schema import Cell, CompiledPrograms, Run
from bench.store import Store
from factories import (
    START,
    make_cell,
    make_environment,
    make_phases,
    make_result,
    make_run,
    make_validity,
    put_documents,
)

CELLS = tuple(make_cell(batch_size=size) for size in (1, 2, 4))
SLOWED = CELLS[1]


@dataclass(kw_only=True)
class SimulatedNights:
    """Writes runs of CELLS into a store: repeats vary by 1 %, and so do nights."""

    store: Store
    cells: Sequence[Cell] = CELLS
    matrix: str = "smoke"
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(20261122))

    def put_night(
        self,
        number: int,
        *,
        factors: Mapping[str, float] | None = None,
        environment: Mapping[str, Any] | None = None,
        disturbed: Collection[Cell] = (),
        **overrides: Any,
    ) -> Run:
        """Write the run of a night; `factors`: by which cells (by their ids) take longer than 0.1 s, and
        `import` than 20 steps.

        `disturbed`: cells whose repeats all have the verdict `contaminated`.
        """
        fields: dict[str, Any] = {
            "run_id": f"night-{number}",
            "created_at": START + timedelta(days=number),
            "matrix": self.matrix,
        }
        run = make_run(self.cells, **(fields | overrides))
        self._put(run, factors or {}, environment or {}, disturbed)
        return run

    def put_confirmation(
        self, run_id: str, cells: Sequence[Cell], *, factors: Mapping[str, float] | None = None, repeats: int = 10,
        environment: Mapping[str, Any] | None = None,
    ) -> Run:  # fmt: skip
        """Write the run that measured cells again."""
        run = make_run(cells, repeats=repeats, run_id=run_id, matrix=f"confirm-{self.matrix}")
        self._put(run, factors or {}, environment or {})
        return run

    def _put(
        self, run: Run, factors: Mapping[str, float], environment: Mapping[str, Any], disturbed: Collection[Cell] = ()
    ) -> None:
        results, imports = [], 2 * factors.get("import", 1.0)
        for planned in run.cells:
            night = 0.01 * self.rng.standard_normal()
            for repeat in range(1, planned.repeats + 1):
                log = night + 0.01 * self.rng.standard_normal()
                seconds = 0.1 * float(np.exp(log)) * factors.get(planned.cell.cell_id, 1.0)
                results.append(
                    make_result(
                        planned.cell,
                        run_id=run.run_id,
                        repeat=repeat,
                        started_at=run.created_at,
                        step_seconds=(seconds, seconds, seconds),
                        phases=make_phases((seconds,) * 3, (0.2, 0.1), import_seconds=imports * float(np.exp(log))),
                        compiled_programs=CompiledPrograms(),
                        environment=make_environment(**environment),
                        validity=make_validity("contaminated") if planned.cell in disturbed else make_validity(),
                    )
                )
        put_documents(self.store, run, results)

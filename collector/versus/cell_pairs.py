"""Two cells that belong together, one of each side, and what is known of them before their ratio is judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from collector.machines import DIFFERENT_BY_NATURE, is_confounded
from collector.results.cells import is_shared
from collector.versus.noise import PoolKey
from collector.versus.sides import CellSide


@dataclass(frozen=True, kw_only=True)
class CellPair:
    """Two cells that belong together."""

    label: str
    a: CellSide
    b: CellSide

    @property
    def problem(self) -> str | None:
        """Why the two have no ratio; None where they have one."""
        return "; ".join(side.problem for side in (self.a, self.b) if side.problem) or None

    @property
    def is_same_run(self) -> bool:
        """Whether both sides rest on the same runs, so that what a run does to all cells cancels."""
        return self.a.run_ids == self.b.run_ids

    @property
    def is_same_machine(self) -> bool:
        """Whether both ran on the same machines; of a GPU and a CPU cell, whether on the same hosts."""
        if self.a.cell["device"] != self.b.cell["device"]:
            return list_values(self.a, "host") == list_values(self.b, "host")
        return self.a.machines == self.b.machines

    @property
    def field(self) -> str:
        """The field in which the sides differ by nature, for the words on their machines; empty where in none."""
        return next((name for name in DIFFERENT_BY_NATURE if self.a.cell[name] != self.b.cell[name]), "")

    @property
    def is_confounded(self) -> bool:
        """Whether the ratio of one run holds a difference of machines of which nothing says how large it is."""
        return self.is_same_run and not self.problem and is_confounded(self.make_row(), self.field)

    def make_row(self) -> dict[str, Any]:
        """Return the pair as `collector.machines` reads it; A is its reference."""
        row: dict[str, Any] = {}
        for suffix, side in (("subject", self.b), ("reference", self.a)):
            types = list_values(side, "instance_type")
            row |= {
                f"machines_{suffix}": "; ".join(side.machines),
                f"num_machines_{suffix}": len(side.machines),
                f"hostnames_{suffix}": "; ".join(list_values(side, "host")),
                f"instance_types_{suffix}": "; ".join(types) or None,
            }
            row |= {f"{name}_{suffix}" if self.field else name: side.cell[name] for name in DIFFERENT_BY_NATURE}
        return row

    @property
    def pools(self) -> tuple[PoolKey, ...]:
        """Which kinds of noise the pair is held against: one for each device of its sides."""
        shares = any(is_shared(side.cell) for side in (self.a, self.b))
        devices = sorted({side.cell["device"] for side in (self.a, self.b)})
        return tuple((device, self.is_same_machine, shares) for device in devices)


def are_within_runs(pairs: Sequence[CellPair]) -> bool:
    """Return whether both sides of every pair are of the same runs: no two runs are held against each other."""
    return all(pair.is_same_run for pair in pairs)


def list_values(side: CellSide, column: str) -> list[str]:
    """Return what the repeats that count have in a column, each value once, sorted."""
    return sorted({row[column] for row in side.counted if row[column] is not None})

"""Audit a table: for each row the verdict by arithmetic, by measurement, and of both."""

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from collector.audit.arithmetic import Arithmetic, describe_figure, judge_by_arithmetic
from collector.audit.devices import AuditedDevice, find_device
from collector.audit.matching import Measured, judge_by_measurement
from collector.audit.table import AuditTable, TableRow

AuditVerdict = Literal["possible", "implausible", "impossible", "unknown", "reproduced", "not reproduced"]

CONTRADICTION = (
    "measured cells agree with it nevertheless: the stated peak or the counted operations are wrong, or the cells are"
)
STATED_PEAK = "judged by a peak that the device does not have"
"""How the reason begins that names such a peak: the verdict stays that by the stated one, as the table means it."""


@dataclass(frozen=True, kw_only=True)
class AuditedRow:
    """A row with its verdicts."""

    number: int
    """Its place in the table, from 1."""
    row: TableRow
    device: AuditedDevice
    arithmetic: Arithmetic
    measured: Measured

    @property
    def verdict(self) -> AuditVerdict:
        """What was measured, where it was; `impossible` stands whatever was measured."""
        if self.arithmetic.verdict == "impossible" or self.measured.verdict == "not tested":
            return self.arithmetic.verdict
        return self.measured.verdict

    @property
    def verdict_in_words(self) -> str:
        """The verdict for people."""
        return self.arithmetic_in_words if self.verdict == self.arithmetic.verdict else self.verdict

    @property
    def arithmetic_in_words(self) -> str:
        """The verdict by arithmetic for people, in the words of the claims.

        What F(2x2, 3x3) reaches, which float32 libraries ordinarily use, is `implausible without Winograd`; what only
        the larger tiles of F(4x4, 3x3) reach is `implausible`.
        """
        is_ordinary = self.arithmetic.algorithm == "F(2x2, 3x3)"
        return f"{self.arithmetic.verdict} without Winograd" if is_ordinary else self.arithmetic.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdicts are what they are; nothing where arithmetic has no objection and no run was given."""
        by_arithmetic, by_measurement = self.arithmetic.reason, self.measured.reason
        reasons = [f"{STATED_PEAK}: {self.device.contradiction}"] if self.device.contradiction else []
        reasons += [f"{self.arithmetic_in_words}: {by_arithmetic}"] if by_arithmetic else []
        reasons += [f"{self.measured.verdict}: {by_measurement}"] if by_measurement else []
        if self.arithmetic.verdict == "impossible" and self.measured.verdict == "reproduced":
            reasons.append(CONTRADICTION)
        return tuple(reasons)

    @property
    def name(self) -> str:
        """What was timed on what: `PyTorch AMP, Tesla T4, batch 64, amp`."""
        row = self.row
        what = row.label or " ".join(filter(None, (row.framework, row.model or "model", row.phase)))
        devices = self.device.name if row.num_devices == 1 else f"{row.num_devices} x {self.device.name}"
        batch = f"batch {row.batch_size}" if row.batch_size is not None else ""
        return ", ".join(filter(None, (what, devices, batch, row.precision)))

    @property
    def figure(self) -> str:
        """The figure as stated."""
        return describe_figure(self.row)


def audit_table(
    table: AuditTable, summary: pd.DataFrame | None = None, *, include_invalid: bool = False
) -> tuple[AuditedRow, ...]:
    """Return the rows of `table` with their verdicts; `summary`: rows of `summarize_collections` of the runs, if any.

    Raises UnknownDeviceError for a row whose device neither the table nor `bench.peaks` knows.
    """
    return tuple(
        _audit_row(number, row, find_device(table, row), summary, include_invalid=include_invalid)
        for number, row in enumerate(table.rows, start=1)
    )


def _audit_row(
    number: int, row: TableRow, device: AuditedDevice, summary: pd.DataFrame | None, *, include_invalid: bool
) -> AuditedRow:
    return AuditedRow(
        number=number,
        row=row,
        device=device,
        arithmetic=judge_by_arithmetic(row, device),
        measured=judge_by_measurement(row, device, summary, include_invalid=include_invalid),
    )

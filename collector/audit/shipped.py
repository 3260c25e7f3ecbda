"""Find the tables that come with the tool: YAML files, and the study's table, which is made from its claims."""

from pathlib import Path

from bench.registry import Phase
from collector.audit.table import AuditTable, StatedDevice, StatedReading, TableRow
from collector.claims import study as claimed
from collector.claims.study import Entry, Reading, Study, load_study

FOLDER = Path(__file__).parent / "tables"
STUDY_NAME = "study"


def list_shipped_tables() -> dict[str, Path | None]:
    """Return the names of the tables with their files; None for the study's, which `make_study_table` makes."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))} | {STUDY_NAME: None}


def make_study_table() -> AuditTable:
    """Return the study's table with the readings, peaks and bounds that its claims are judged by."""
    study = load_study()
    return AuditTable(
        title=study.title,
        source=study.source,
        provenance=study.table_name,
        remark=f"Stated protocol: {study.protocol}.",
        devices=(_state_device(study.gpu), _state_device(study.cpu)),
        rows=tuple(_make_row(study, entry) for entry in study.table),
    )


def _state_device(device: claimed.StatedDevice) -> StatedDevice:
    return StatedDevice(
        name=device.name,
        source=device.bound_reason,
        tflops={"fp32": device.high_peak_flops_per_second / 1e12},
        bound_tflops={"fp32": device.bound_flops_per_second / 1e12},
        measured_as=device.word,
        num_threads=device.num_threads,
    )


def _make_row(study: Study, entry: Entry) -> TableRow:
    workload = study.workloads[entry.model]
    return TableRow(
        device=study.find_device(entry.device).name,
        model=entry.model,
        framework=entry.framework,
        phase=entry.phase,
        precision="fp32",
        batch_size=workload.batch_size,
        milliseconds=entry.milliseconds,
        readings=tuple(_state_reading(reading, entry.phase) for reading in workload.readings),
    )


def _state_reading(reading: Reading, phase: Phase) -> StatedReading:
    return StatedReading(
        label=reading.label,
        input_size=reading.input_size,
        is_model=reading.is_cell,
        flops_per_sample=reading.count_flops(phase),
        most_flops_per_sample=reading.count_most_flops(phase),
        winograd_share=reading.find_winograd_share(phase),
    )

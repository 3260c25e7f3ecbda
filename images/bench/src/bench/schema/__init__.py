"""The contract between the parts: a Cell goes into a container, a Result comes out, a Run says what was planned.

On a cluster a Placement says where an attempt ran, and a NodeFault that its node could not measure it. A RawRemoval
says which results were removed from the store on purpose. A Suspicion, a Decision and a Notice are what `benchmatrix
watch` keeps of a change that it saw over nights. The tenants of a repeat meet by a TenantCall, a TenantReady and a
TenantPace each and a CommonWindow, and each leaves a TenantRecord; the Result has their Tenancy.

All documents are frozen, versioned and strict: unknown fields, NaN, negative times and inconsistent counts are refused.
Units are in the names: seconds, bytes. A reader of version 2 refuses other versions with a message that names them.
"""

from typing import Any

from bench.registry import Device, Framework, Mode, Phase
from bench.schema.calibration import Calibration
from bench.schema.cell import MAX_TENANTS, WHOLE_DEVICE, Cell, Sharing, is_device_shared
from bench.schema.device_profile import DeviceProfile, GpuActivity
from bench.schema.document import (
    EARLIEST,
    LATEST,
    MAX_AMOUNT,
    SCHEMA_VERSION,
    SMALLEST_POSITIVE,
    Document,
    Name,
    StoredDocument,
    check_time,
    hash_text,
)
from bench.schema.environment import Environment, Gpu
from bench.schema.failure import Failure, FailureKind, Status
from bench.schema.gpu_use import ForeignProcess, GpuUse, GpuWindow
from bench.schema.machine import Machine, MachineIdentity
from bench.schema.measurement import (
    CpuUse,
    HostPeak,
    Memory,
    Phases,
    PipelinedWindow,
    Reason,
    Roofline,
    Samples,
    SustainedRun,
    Validity,
    Verdict,
)
from bench.schema.neighbour import Neighbour, Precision
from bench.schema.night import Alarm, AlarmedChange, Decision, Direction, NightChange, Notice, Outcome, Shift, Suspicion
from bench.schema.node_fault import NodeFault
from bench.schema.placement import Node, Placement
from bench.schema.raw_removal import RawRemoval, RemovedResult
from bench.schema.reading import (
    InvalidDocumentError,
    read_decision,
    read_document,
    read_node_fault,
    read_notice,
    read_placement,
    read_raw_removal,
    read_result,
    read_run,
    read_suspicion,
)
from bench.schema.result import Result
from bench.schema.run import Cluster, Ending, LeftOutCell, MissingRepeat, PlannedCell, Run
from bench.schema.tenancy import (
    CommonWindow,
    Tenancy,
    TenantCall,
    TenantPace,
    TenantPlace,
    TenantReady,
    TenantRecord,
)
from bench.schema.time_of_day import MAX_ATTEMPT, bound_time, describe_clock, measure_attempt, read_time_of_day

__all__ = [
    "EARLIEST",
    "LATEST",
    "Alarm",
    "AlarmedChange",
    "MAX_AMOUNT",
    "MAX_ATTEMPT",
    "MAX_TENANTS",
    "WHOLE_DEVICE",
    "SCHEMA_VERSION",
    "SMALLEST_POSITIVE",
    "Calibration",
    "Cell",
    "Cluster",
    "CommonWindow",
    "CpuUse",
    "Decision",
    "Device",
    "DeviceProfile",
    "Direction",
    "Document",
    "Ending",
    "Environment",
    "Failure",
    "FailureKind",
    "ForeignProcess",
    "Framework",
    "Gpu",
    "GpuActivity",
    "GpuUse",
    "GpuWindow",
    "HostPeak",
    "InvalidDocumentError",
    "LeftOutCell",
    "Machine",
    "MachineIdentity",
    "Memory",
    "MissingRepeat",
    "Mode",
    "Name",
    "Neighbour",
    "NightChange",
    "Node",
    "NodeFault",
    "Notice",
    "Outcome",
    "Phase",
    "Phases",
    "PipelinedWindow",
    "Placement",
    "PlannedCell",
    "Precision",
    "RawRemoval",
    "Reason",
    "RemovedResult",
    "Result",
    "Roofline",
    "Run",
    "Samples",
    "Sharing",
    "Shift",
    "StoredDocument",
    "Status",
    "Suspicion",
    "SustainedRun",
    "Tenancy",
    "TenantCall",
    "TenantPace",
    "TenantPlace",
    "TenantReady",
    "TenantRecord",
    "Validity",
    "Verdict",
    "bound_time",
    "check_time",
    "describe_clock",
    "measure_attempt",
    "export_json_schema",
    "hash_text",
    "read_decision",
    "read_node_fault",
    "read_notice",
    "read_placement",
    "read_raw_removal",
    "read_time_of_day",
    "read_result",
    "read_run",
    "read_suspicion",
    "read_document",
    "is_device_shared",
]


def export_json_schema() -> dict[str, Any]:
    """Return one JSON Schema document with every kind of document under `$defs`."""
    from pydantic.json_schema import models_json_schema

    kinds: tuple[type[Document], ...] = (
        *(Cell, Result, Run, Placement, NodeFault, RawRemoval, Suspicion, Decision, Notice, Alarm),
        *(TenantCall, TenantReady, TenantPace, CommonWindow, TenantRecord),
    )
    _, schema = models_json_schema(
        [(kind, "validation") for kind in kinds],
        title="benchmatrix documents",
        ref_template="#/$defs/{model}",
    )
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}

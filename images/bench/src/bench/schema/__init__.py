"""The contract between the parts: a Cell goes into a container, a Result comes out, a Run says what was planned.

On a cluster a Placement says where an attempt ran, and a NodeFault that its node could not measure it. A RawRemoval
says which results were removed from the store on purpose. A Suspicion, a Decision and a Notice are what `benchmatrix
watch` keeps of a change that it saw over nights. The tenants of a repeat meet by a TenantCall, a TenantReady and a
TenantPace each and a CommonWindow, and each leaves a TenantRecord; the Result has their Tenancy.

All documents are frozen, versioned and strict: unknown fields, NaN, negative times and inconsistent counts are refused.
Units are in the names: seconds, bytes. A reader of version 2 refuses other versions with a message that names them.
"""

from functools import partial
from typing import Any

from bench.registry import Device, Framework, Mode, Phase
from bench.schema.cell import MAX_TENANTS, WHOLE_DEVICE, Cell, Neighbour, Precision, Sharing, is_device_shared
from bench.schema.document import (
    EARLIEST,
    LATEST,
    MAX_AMOUNT,
    MAX_ATTEMPT,
    SCHEMA_VERSION,
    SMALLEST_POSITIVE,
    Document,
    InvalidDocumentError,
    Name,
    StoredDocument,
    bound_time,
    check_time,
    describe_clock,
    hash_text,
    measure_attempt,
    read_document,
    read_time_of_day,
)
from bench.schema.environment import Environment, Gpu, Machine, MachineIdentity
from bench.schema.measurement import (
    Calibration,
    CpuUse,
    DeviceProfile,
    ForeignProcess,
    GpuActivity,
    GpuUse,
    GpuWindow,
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
from bench.schema.night import Alarm, AlarmedChange, Decision, Direction, NightChange, Notice, Outcome, Shift, Suspicion
from bench.schema.result import (
    CommonWindow,
    Failure,
    FailureKind,
    Result,
    Status,
    Tenancy,
    TenantCall,
    TenantPace,
    TenantPlace,
    TenantReady,
    TenantRecord,
)
from bench.schema.run import (
    Cluster,
    Ending,
    LeftOutCell,
    MissingRepeat,
    Node,
    NodeFault,
    Placement,
    PlannedCell,
    RawRemoval,
    RemovedResult,
    Run,
)

read_result = partial(read_document, Result)
read_run = partial(read_document, Run)
read_placement = partial(read_document, Placement)
read_node_fault = partial(read_document, NodeFault)
read_raw_removal = partial(read_document, RawRemoval)
read_suspicion = partial(read_document, Suspicion)
read_decision = partial(read_document, Decision)
read_notice = partial(read_document, Notice)


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

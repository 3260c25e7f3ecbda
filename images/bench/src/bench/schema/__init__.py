"""The contract between the parts: a Cell goes into a container, a Result comes out, a Run says what was planned.

On a cluster a Placement says where an attempt ran, and a NodeFault that its node could not measure it. A RawRemoval
says which results were removed from the store on purpose. A Suspicion, a Decision and a Notice are what `benchmatrix
watch` keeps of a change that it saw over nights. The tenants of a repeat meet in a CommonWindow, and each leaves a
TenantRecord; the Result has their Tenancy.

All documents are frozen, versioned and strict: unknown fields, NaN, negative times and inconsistent counts are refused.
Units are in the names: seconds, bytes. A reader of version 2 refuses other versions with a message that names them.
"""

# ruff: noqa: F403, F405  (names of the modules below)
from functools import partial

from bench.registry import Device as Device
from bench.registry import Framework as Framework
from bench.registry import Mode as Mode
from bench.registry import Phase as Phase
from bench.registry import Precision as Precision
from bench.schema.cell import *
from bench.schema.document import *
from bench.schema.environment import *
from bench.schema.measurement import *
from bench.schema.result import *
from bench.schema.run import *

read_result = partial(read_document, Result)
read_run = partial(read_document, Run)
read_placement = partial(read_document, Placement)
read_node_fault = partial(read_document, NodeFault)
read_raw_removal = partial(read_document, RawRemoval)
read_suspicion = partial(read_document, Suspicion)
read_decision = partial(read_document, Decision)
read_notice = partial(read_document, Notice)

"""Order: what one measuring process is asked to do, passed to it in environment variables.

BENCH_CELL (the Cell as JSON) or BENCH_CELL_FILE, BENCH_RUN_ID, BENCH_REPEAT, BENCH_ATTEMPT and BENCH_STORE are needed;
BENCH_IMAGE, BENCH_GIT_REVISION, BENCH_NODE, BENCH_COMPILE_CACHE, BENCH_TIMEOUT_SECONDS, BENCH_GRACE_SECONDS and
BENCH_PARENT_PID are not. A cell with several tenants needs BENCH_TENANT (0, 1, ...) and BENCH_TENANT_GROUP besides.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.errors import UserError
from bench.schema import MAX_TENANTS, Cell, InvalidDocumentError, read_document
from bench.store.keys import NAME

MAX_SECONDS = 31_536_000
COMPILE_CACHE_VARIABLE = "BENCH_COMPILE_CACHE"
TENANT_VARIABLE, TENANT_GROUP_VARIABLE = "BENCH_TENANT", "BENCH_TENANT_GROUP"


@dataclass(frozen=True, kw_only=True)
class Order:
    """One attempt at one repeat of a cell, and where its result goes."""

    cell: Cell
    run_id: str
    repeat: int
    attempt: str
    store_url: str
    image: str | None = None
    git_revision: str | None = None
    node: str | None = None
    """The machine that the container runs on; None: its own host name is the machine's."""
    compile_cache: str | None = None
    """The folder where compiled kernels outlive the container; None: each container compiles its own."""
    timeout_seconds: float | None = None
    """How long the attempt may take, import included; None: the parent enforces the limit."""
    grace_seconds: float | None = None
    """Time between SIGTERM and SIGKILL; None: it is not known."""
    parent_pid: int | None = None
    """The process to die with; None in a container, where there is no runner beside it."""
    tenant: int = 0
    """Which of the cell's tenants this process is."""
    tenant_group: str | None = None
    """By what the tenants of one repeat find each other: the same for all of them, and for no others. None: the cell
    has one tenant."""

    def __post_init__(self) -> None:
        """Raise UserError where parts contradict each other, such as the tenant and the number of the cell's."""
        if self.tenant >= self.cell.tenants:
            raise UserError(f"{TENANT_VARIABLE}: {self.tenant} is none of 0 to {self.cell.tenants - 1}, the cell's")
        if self.cell.tenants > 1 and self.tenant_group is None:
            raise UserError(f"{TENANT_GROUP_VARIABLE}: not set; a cell with {self.cell.tenants} tenants needs it")

    def to_variables(self) -> dict[str, str]:
        """Return the environment variables that `from_variables` reads this order from."""
        variables = {
            "BENCH_CELL": self.cell.model_dump_json(),
            "BENCH_RUN_ID": self.run_id,
            "BENCH_REPEAT": str(self.repeat),
            "BENCH_ATTEMPT": self.attempt,
            "BENCH_STORE": self.store_url,
            "BENCH_IMAGE": self.image,
            "BENCH_GIT_REVISION": self.git_revision,
            "BENCH_NODE": self.node,
            COMPILE_CACHE_VARIABLE: self.compile_cache,
            "BENCH_TIMEOUT_SECONDS": None if self.timeout_seconds is None else f"{self.timeout_seconds:g}",
            "BENCH_GRACE_SECONDS": None if self.grace_seconds is None else f"{self.grace_seconds:g}",
            "BENCH_PARENT_PID": None if self.parent_pid is None else str(self.parent_pid),
            TENANT_VARIABLE: str(self.tenant) if self.tenant_group is not None else None,
            TENANT_GROUP_VARIABLE: self.tenant_group,
        }
        return {name: value for name, value in variables.items() if value is not None}

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Self:
        """Read an order. Raises UserError that names the variable which is missing or wrong."""
        return cls(
            cell=_read_cell(variables),
            run_id=_read_name(variables, "BENCH_RUN_ID"),
            repeat=_read_count(variables, "BENCH_REPEAT"),
            attempt=_read_name(variables, "BENCH_ATTEMPT"),
            store_url=_require(variables, "BENCH_STORE"),
            image=variables.get("BENCH_IMAGE"),
            git_revision=variables.get("BENCH_GIT_REVISION"),
            node=variables.get("BENCH_NODE"),
            compile_cache=variables.get(COMPILE_CACHE_VARIABLE),
            timeout_seconds=_read_seconds(variables, "BENCH_TIMEOUT_SECONDS"),
            grace_seconds=_read_seconds(variables, "BENCH_GRACE_SECONDS"),
            parent_pid=_read_count(variables, "BENCH_PARENT_PID") if "BENCH_PARENT_PID" in variables else None,
            tenant=_read_tenant(variables),
            tenant_group=_read_name(variables, TENANT_GROUP_VARIABLE) if TENANT_GROUP_VARIABLE in variables else None,
        )


def _read_cell(variables: Mapping[str, str]) -> Cell:
    name, text = "BENCH_CELL", variables.get("BENCH_CELL")
    if text is None:
        path = variables.get("BENCH_CELL_FILE")
        if path is None:
            raise UserError("BENCH_CELL: not set; it takes a cell as JSON (or BENCH_CELL_FILE the path of one)")
        name = f"BENCH_CELL_FILE {path}"
        try:
            text = Path(path).read_text()
        except (OSError, ValueError) as error:
            raise UserError(f"{name}: cannot be read ({error})") from error
    try:
        return read_document(Cell, text.encode(errors="surrogateescape"))
    except InvalidDocumentError as error:
        raise UserError(f"{name}: {error}; `benchmatrix schema` prints what a cell is") from error


def _require(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(name)
    if not value:
        raise UserError(f"{name}: not set; `python -m bench` needs it")
    return value


def _read_name(variables: Mapping[str, str], name: str) -> str:
    text = _require(variables, name)
    if not re.fullmatch(NAME, text):
        raise UserError(f"{name}: {text!r} is no name of a-z, 0-9 and '-' (no '-' at its ends, at most 63 characters)")
    return text


def _read_count(variables: Mapping[str, str], name: str) -> int:
    text = _require(variables, name)
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise UserError(f"{name}: {text!r} is no whole number from 1 to 999,999,999")
    return int(text)


def _read_tenant(variables: Mapping[str, str]) -> int:
    if TENANT_GROUP_VARIABLE not in variables:
        return 0
    text = _require(variables, TENANT_VARIABLE)
    if not re.fullmatch("[0-9]{1,2}", text):
        raise UserError(f"{TENANT_VARIABLE}: {text!r} is no whole number from 0 to {MAX_TENANTS - 1}")
    return int(text)


def _read_seconds(variables: Mapping[str, str], name: str) -> float | None:
    text = variables.get(name)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= MAX_SECONDS:
        raise UserError(f"{name}: {text!r} is no number of seconds above 0 and of at most {MAX_SECONDS} (a year)")
    return seconds

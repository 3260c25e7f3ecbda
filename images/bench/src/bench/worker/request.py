"""Order: what one measuring process is asked to do, passed to it in environment variables."""

import re
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from bench.errors import UserError
from bench.redaction import is_secret_variable
from bench.schema import MAX_TENANTS, Cell, InvalidDocumentError, Name, describe_error, read_document

COMPILE_CACHE_VARIABLE = "BENCH_COMPILE_CACHE"
TENANT_VARIABLE, TENANT_GROUP_VARIABLE = "BENCH_TENANT", "BENCH_TENANT_GROUP"

TIMING_VARIABLE = re.compile(
    "(?!CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|HOME|PATH|VERSION|MPS_.*)$|(NCCL|CUDNN)_VERSION$|TORCH_HOME$|"
    "TF_(HTTP_|CPP_|CLI_|VAR_|TOKEN_|LOG|INPUT$|DATA_DIR$|IN_AUTOMATION$|WORKSPACE$|PLUGIN_CACHE_DIR$|REGISTRY_)|"
    "(TORCHINDUCTOR|TRITON|JAX_COMPILATION)_CACHE_DIR$|(OMP|MKL|OPENBLAS)_NUM_THREADS$|TF_NUM_INT(RA|ER)OP_THREADS$)"
    "(TORCH|PYTORCH|ATEN|OMP_|GOMP_|KMP_|MKL_|DNNL_|ONEDNN_|OPENBLAS|JAX_|XLA_|TF_|TRITON_|CUDA_|NVIDIA_TF32_|NCCL_|"
    "CUBLAS|CUDNN|MALLOC_|GLIBC_TUNABLES$|LD_PRELOAD$)"
)
"""Variables that change times or precision from outside: by their beginnings, for a list of names would miss what the
next version of a library reads. Not those that say where things lie, that each measuring process sets itself, or that
are Terraform's."""

Count = Annotated[int, Field(ge=1, le=999_999_999)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]
"""Of at most a year."""


def read_timing_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those that were set from outside; called before this process sets its own."""
    return {
        name: value
        for name, value in sorted(variables.items())
        if TIMING_VARIABLE.match(name) and not is_secret_variable(name, value)
    }


class Order(BaseModel):
    """One attempt at one repeat of a cell, and where its result goes; the aliases are the variables."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    cell: Cell = Field(alias="BENCH_CELL")
    """As JSON."""
    run_id: Name = Field(alias="BENCH_RUN_ID")
    repeat: Count = Field(alias="BENCH_REPEAT")
    attempt: Name = Field(alias="BENCH_ATTEMPT")
    store_url: str = Field(alias="BENCH_STORE")
    image: str | None = Field(default=None, alias="BENCH_IMAGE")
    git_revision: str | None = Field(default=None, alias="BENCH_GIT_REVISION")
    node: str | None = Field(default=None, alias="BENCH_NODE")
    """The machine that the container runs on; None: its own host name is the machine's."""
    compile_cache: str | None = Field(default=None, alias=COMPILE_CACHE_VARIABLE)
    """The folder where compiled kernels outlive the container; None: each container compiles its own."""
    timeout_seconds: Seconds | None = Field(default=None, alias="BENCH_TIMEOUT_SECONDS")
    """How long the attempt may take, import included; None: the parent enforces the limit."""
    grace_seconds: Seconds | None = Field(default=None, alias="BENCH_GRACE_SECONDS")
    """Time between SIGTERM and SIGKILL; None: it is not known."""
    parent_pid: Count | None = Field(default=None, alias="BENCH_PARENT_PID")
    """The process to die with; None in a container, where there is no runner beside it."""
    tenant: Annotated[int, Field(ge=0, lt=MAX_TENANTS)] = Field(default=0, alias=TENANT_VARIABLE)
    """Which of the cell's tenants this process is."""
    tenant_group: Name | None = Field(default=None, alias=TENANT_GROUP_VARIABLE)
    """By what the tenants of one repeat find each other: the same for all of them, and for no others. None: the cell
    has one tenant."""

    @field_validator("cell", mode="before")
    @classmethod
    def _read_cell(cls, cell: Cell | str) -> Cell:
        if isinstance(cell, Cell):
            return cell
        try:
            return read_document(Cell, cell.encode(errors="surrogateescape"))
        except InvalidDocumentError as error:
            raise ValueError(f"{error}; `benchmatrix schema` prints what a cell is") from None

    @model_validator(mode="after")
    def _check_tenant(self) -> Self:
        if self.tenant >= self.cell.tenants:
            raise UserError(f"{TENANT_VARIABLE}: {self.tenant} is none of 0 to {self.cell.tenants - 1}, the cell's")
        if self.cell.tenants > 1 and self.tenant_group is None:
            raise UserError(f"{TENANT_GROUP_VARIABLE}: not set; a cell with {self.cell.tenants} tenants needs it")
        return self

    def to_variables(self) -> dict[str, str]:
        """Return the environment variables that `from_variables` reads this order from."""
        unset = {"cell"} if self.tenant_group else {"cell", "tenant"}
        fields = self.model_dump(by_alias=True, exclude_none=True, exclude=unset)
        texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in fields.items()}
        return {"BENCH_CELL": self.cell.model_dump_json(), **texts}

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Self:
        """Read an order. Raises UserError that names the variable which is missing or wrong."""
        if TENANT_GROUP_VARIABLE in variables and TENANT_VARIABLE not in variables:
            raise UserError(f"{TENANT_VARIABLE}: not set; every tenant has a number of its own")
        names = {str(field.alias) for field in cls.model_fields.values()}
        given = {name: value for name, value in variables.items() if name in names and value != ""}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise UserError(describe_error(error).removeprefix(f"no {cls.__name__}: ")) from None

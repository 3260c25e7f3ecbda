"""What all checks of doctor need: what a finding is, the cluster, a profile, and a Job of each kind of cell."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from bench.errors import UserError
from bench.schema import Cell, PlannedCell
from runner.kubernetes.connection import ApiError, BusyError, Connection
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import JobRenderer
from runner.kubernetes.run import ClusterTarget
from runner.matrix.expansion import Matrix
from runner.profiles.model import Profile
from runner.profiles.pools import is_shared

FindingState = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found of one precondition."""

    check: str
    """Which precondition, in a few words."""
    state: FindingState
    """`warning`: it could not be checked, or a run may go well without it."""
    message: str
    hint: str = ""
    """How to fix it; empty if the check passed."""
    details: tuple[str, ...] = ()
    """Lines printed below it, such as groups of nodes."""


def find_object(connection: Connection, path: str) -> dict[str, Any] | None:
    """Return an object, or None if there is none; ApiError if the server refuses."""
    try:
        return connection.get_object(path)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise


def explain_unchecked(check: str, error: ApiError) -> Finding:
    if error.status == HTTPStatus.FORBIDDEN:
        return Finding(
            check=check,
            state="warning",
            message=f"not checked: you lack the permission: {error.message}",
            hint="ask somebody with that permission to run `benchmatrix doctor`, or go on without",
        )
    hint = "try again when it is back" if isinstance(error, BusyError) else "ask the cluster's administrator"
    return Finding(check=check, state="failed", message=f"not checked: {error.message}", hint=hint)


DOCTOR = "doctor"
"""Stands for the run in Jobs that are only tried."""
ANY_STORE = "s3://bucket/prefix"
ANY_IMAGE = "registry.invalid/image"
"""Stands for an image that the profile does not name, so that all else can be looked at; `.invalid` is nobody's."""


@dataclass(frozen=True, kw_only=True)
class CellKind:
    """Cells that differ in nothing that the cluster sees, and the Job of one of them."""

    cell: Cell
    body: bytes
    """The Job as the body of a request."""
    has_image: bool = True
    """Whether the profile names its image; the Job has a name that stands for it otherwise."""

    @property
    def place(self) -> str:
        """What decides on which nodes they can run: `the CPU`, `2 GPUs`, `1 GPU shared by 4 (mps)`."""
        cell = self.cell
        place = "the CPU" if cell.device == "cpu" else f"{cell.num_gpus} GPU{'s' if cell.num_gpus > 1 else ''}"
        if is_shared(cell):
            return f"{place} shared by {cell.tenants} ({cell.sharing})"
        return f"{place} with {cell.tenants} tenants" if cell.tenants > 1 else place

    @property
    def pod_spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = json.loads(self.body)["spec"]["template"]["spec"]
        return spec


@dataclass(frozen=True, kw_only=True)
class DoctorContext:
    """A cluster, and the kinds of cells that are to run there."""

    connection: Connection
    target: ClusterTarget
    matrix: Matrix
    kinds: tuple[CellKind, ...]
    store_url: str | None
    """Where the results will go. None: it was not said."""
    findings: tuple[Finding, ...]
    """What follows from the profile alone."""

    @property
    def profile(self) -> Profile:
        return self.target.profile

    @property
    def namespace(self) -> str:
        return self.profile.namespace

    @classmethod
    def make(
        cls,
        connection: Connection,
        target: ClusterTarget,
        matrix: Matrix,
        store_url: str | None,
    ) -> "DoctorContext":
        """Return the context; a kind of cell that no Job can be rendered for is among the findings."""
        reasons = [target.explain_unsupported(planned.cell) for planned in matrix.cells]
        runnable = [planned for planned, reason in zip(matrix.cells, reasons, strict=True) if reason is None]
        findings = [_describe_cells(matrix, Counter(filter(None, reasons)), num_runnable=len(runnable))]
        kinds = []
        for planned in _choose_one_of_each(runnable):
            profile, problem = _complete_images(target.profile, planned.cell)
            findings += [_describe_problem(problem)] if problem else []
            renderer = JobRenderer(
                profile=profile,
                store_url=store_url or ANY_STORE,
                git_revision=None,
                queue=target.queue,
            )
            key = JobKey(run_id=DOCTOR, cell_id=planned.cell.cell_id, number=1, retry_round=0)
            try:
                body = renderer.render(planned, key)
            except UserError as error:
                findings.append(_describe_problem(error))
            else:
                kinds.append(CellKind(cell=planned.cell, body=body, has_image=problem is None))
        return cls(
            connection=connection,
            target=target,
            matrix=matrix,
            kinds=tuple(kinds),
            store_url=store_url,
            findings=tuple(findings),
        )


def _complete_images(profile: Profile, cell: Cell) -> tuple[Profile, UserError | None]:
    try:
        profile.find_image(cell)
    except UserError as error:
        return profile.model_copy(update={"images": {cell.framework: {cell.device: ANY_IMAGE}}}), error
    return profile, None


def _describe_problem(error: UserError) -> Finding:
    message, _, hint = str(error).partition("; ")
    return Finding(check="profile", state="failed", message=message, hint=hint)


def _choose_one_of_each(cells: list[PlannedCell]) -> Iterator[PlannedCell]:
    seen = set()
    for planned in cells:
        cell = planned.cell
        kind = (cell.framework, cell.device, cell.num_gpus, cell.tenants, cell.sharing)
        if kind not in seen:
            seen.add(kind)
            yield planned


def _describe_cells(matrix: Matrix, reasons: Counter[str], *, num_runnable: int) -> Finding:
    message = f"{num_runnable} of {len(matrix.cells)} cells of {matrix.name} can run here by the profile"
    details = tuple(f"{number} cannot: {reason}" for reason, number in reasons.most_common())
    if num_runnable == 0:
        hint = "name another matrix or another --profile"
        return Finding(check="cells", state="failed", message=message, hint=hint, details=details)
    return Finding(check="cells", state="ok", message=message, details=details)

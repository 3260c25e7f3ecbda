"""Results whose tenants contradict them or each other, for tests of `bench.contradictions`."""

from typing import Any

from bench.schema import Reason, Result
from device_contradiction_cases import Cases, change
from factories import make_cell, make_environment, make_gpu, make_phases
from tenancies import make_place, make_record, make_shared_result, make_tenancy

STEPS = tuple(0.1 + 0.0001 * number for number in range(30))
SHORT = (0.1, 0.1, 0.1)


def share(window: float = 0.3, device: str = "cpu", **changes: Any) -> Result:
    """Return the result of two tenants, the second of which is changed; the first fills the window."""
    number = round(window / 0.1)
    first = make_record(0, step_seconds=[0.1 - 1e-12] * number)
    second = make_record(1, **({"step_seconds": [0.1 - 2e-12] * number} | changes))
    if device == "gpu":
        places = (make_place(record.tenant, device=make_gpu().uuid) for record in (first, second))
        first, second = (
            record if record.place and record.place.device else record.model_copy(update={"place": place})
            for record, place in zip((first, second), places, strict=True)
        )
    cell = make_cell(tenants=2, device=device)
    return make_shared_result(make_tenancy(first, second, window_seconds=window), cell, phases=first.phases)


TENANT_CASES: Cases = {
    "tenant 0 with other steps than the result": (
        lambda: change(
            make_shared_result(), tenancy=make_tenancy(make_record(step_seconds=[0.05]), make_record(1))
        ),
        "the steps of tenant 0 are not those of the result",
    ),
    "steps for longer than the window": (
        lambda: make_shared_result(make_tenancy(make_record(), make_record(1, step_seconds=[0.2, 0.2]))),
        "the steps of tenant 1 took 0.400 s of 0.300 s",
    ),
    "two tenants with one's steps": (
        lambda: make_shared_result(
            make_tenancy(make_record(0, step_seconds=STEPS), make_record(1, step_seconds=STEPS), window_seconds=4.0)
        ),
        "tenants 0 and 1 have the same step times",
    ),
    "a late tenant that steps as long as the others": (
        lambda: share(lateness_seconds=0.25),
        "tenant 1 began 0.250 s late and outlasted its window",
    ),
    "steps far shorter than the seconds that they took": (
        lambda: share(phases=make_phases(SHORT, (0.2, 0.1), steady_seconds=4.0), step_seconds=SHORT, window=4.0),
        "the steps of tenant 1 are 0.300 s in sum, and took 4.000 s",
    ),
    "a tenant that stepped for a part of the window": (
        lambda: share(step_seconds=[0.1] * 3, window=4.0),
        "tenant 1 stepped for 0.300 s of a window of 4.000 s",
    ),
    "other seconds than the result's": (
        lambda: change(
            make_shared_result(),
            tenancy=make_tenancy(
                make_record(0, phases=make_phases(SHORT, (0.2, 0.1), steady_seconds=0.3 + 1e-9)), make_record(1)
            ),
        ),
        "the seconds that the steps of tenant 0 took are not those of the result",
    ),
    "a window shorter than was asked for": (
        lambda: make_shared_result(cell=make_cell(tenants=2, min_seconds=3.0)),
        "its common window of 0.300 s is shorter than its cell's min_seconds",
    ),
    "another machine": (
        lambda: share(place=make_place(1, boot_id="another")),
        "the tenants are not on one machine (boot id), so they have no common clock",
    ),
    "another GPU": (
        lambda: share(place=make_place(1, device="GPU-else"), device="gpu"),
        "the tenants are not on one GPU: GPU-5c1e2f6a-0000-0000-0000-000000000001, GPU-else",
    ),
    "another GPU than the environment has": (
        lambda: change(
            share(device="gpu"), environment=make_environment(gpus=(make_gpu(uuid="GPU-else"),)), gpu_use=()
        ),
        "its tenants ran on GPU-5c1e2f6a-0000-0000-0000-000000000001, its environment has GPU-else",
    ),
    "a tenant under MPS in turns": (
        lambda: share(place=make_place(1, device=make_gpu().uuid, is_under_mps=True), device="gpu"),
        "MPS is in force, where the cell asks for time-slicing for tenant 1",
    ),
}  # fmt: skip
TENANT_VERDICT_CASES: Cases = {
    "a tenant that says of itself that it was on another device": (
        lambda: share(reasons=(Reason(verdict="wrong-device", message="on the cpu"),)),
        "tenant 1: on the cpu, and its verdict does not say wrong-device",
    ),
    "a tenant with a single step": (
        lambda: share(step_seconds=[0.3]),
        "tenant 1: 1 steps in 0.3 s, and its verdict does not say too-short",
    ),
    "a tenant whose rate drifts": (
        lambda: share(step_seconds=[0.1 + 0.01 * number for number in range(20)], window=4.0),
        "tenant 1: its steps are far from even, and its verdict does not say not-steady",
    ),
    "tenants that do together what no T4 can": (
        lambda: share(step_seconds=[0.3 / 3000] * 3000, device="gpu"),
        "its tenants together take",
    ),
}  # fmt: skip

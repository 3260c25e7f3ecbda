"""Orders are read from environment variables; a wrong one is refused with a message that names the variable."""

from typing import Any

import pytest

from bench.errors import UserError
from bench.worker.request import Order, read_timing_variables
from factories import make_cell

CELL = make_cell()
VARIABLES = {
    "BENCH_CELL": CELL.model_dump_json(),
    "BENCH_RUN_ID": "smoke-1",
    "BENCH_REPEAT": "2",
    "BENCH_ATTEMPT": "0a1b2c3d4e",
    "BENCH_STORE": "file:///results",
}
SMALLEST = Order(cell=CELL, run_id="smoke-1", repeat=2, attempt="0a1b2c3d4e", store_url="file:///results")


SHARED = Order(
    cell=make_cell(tenants=12),
    run_id="smoke-1",
    repeat=2,
    attempt="0a1b2c3d4e",
    store_url="file:///results",
    tenant=11,
    tenant_group="b2c3",
)


@pytest.mark.parametrize(
    "changes", [{}, {"timeout_seconds": 600.0, "grace_seconds": 0.5, "parent_pid": 7, "node": "n"}]
)
def test_an_order_survives_its_variables(changes: dict[str, Any]) -> None:
    order = SHARED.model_copy(update=changes)
    assert Order.from_variables(order.to_variables()) == order
    assert (Order.from_variables(VARIABLES), VARIABLES) == (SMALLEST, SMALLEST.to_variables())


def test_a_missing_variable_is_named() -> None:
    for name in VARIABLES:
        with pytest.raises(UserError, match=f"^{name}: Field required"):
            Order.from_variables({key: value for key, value in VARIABLES.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("BENCH_CELL", "{", "^BENCH_CELL: no JSON: EOF"),
        ("BENCH_CELL", '{"model": "conv6"}', "^BENCH_CELL: no Cell: framework: Field required .*; `benchmatrix sch"),
        ("BENCH_RUN_ID", "../other", "^BENCH_RUN_ID: String should match pattern .*, found '../other'"),
        ("BENCH_REPEAT", "0", "^BENCH_REPEAT: Input should be greater than or equal to 1, found '0'"),
        ("BENCH_TIMEOUT_SECONDS", "nan", "^BENCH_TIMEOUT_SECONDS: "),
    ],
)
def test_a_wrong_variable_is_refused_by_name(name: str, value: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        Order.from_variables(VARIABLES | {name: value})
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"BENCH_TENANT_GROUP": None}, "^BENCH_TENANT_GROUP: not set; a cell with 12 tenants needs it"),
        ({"BENCH_TENANT": None}, "^BENCH_TENANT: not set"),
        ({"BENCH_TENANT": "12"}, "^BENCH_TENANT: 12 is none of 0 to 11"),
    ],
)
def test_a_tenant_that_does_not_belong_to_its_cell_is_refused(changes: dict[str, str | None], message: str) -> None:
    variables = SHARED.to_variables() | changes
    with pytest.raises(UserError, match=message):
        Order.from_variables({name: value for name, value in variables.items() if value is not None})


def test_variables_that_can_change_a_time_are_known_by_their_beginnings() -> None:
    timing = ["OMP_THREAD_LIMIT", "TORCHINDUCTOR_MAX_AUTOTUNE", "JAX_DISABLE_JIT", "TF_XLA_FLAGS", "GLIBC_TUNABLES"]
    others = ["CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "TRITON_CACHE_DIR", "TF_VAR_x", "TF_HTTP_PASSWORD", "HOME"]
    assert read_timing_variables(dict.fromkeys([*timing, *others, "NCCL_API_TOKEN"], "1")).keys() == set(timing)

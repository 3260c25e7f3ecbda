"""`python -m bench` as one of several tenants: its record is one of the meeting, and tenant 0's is that of all."""

import sys
from pathlib import Path

from bench.exit_codes import EXIT_NODE_FAULT, EXIT_TRY_AGAIN
from bench.schema import TenantRecord
from bench.store import Store
from bench.tenants.meeting import Meeting
from bench.worker.request import Order
from bench_process import Ending, run_bench
from factories import make_cell

CELL = make_cell(tenants=2)


def run_tenant(folder: Path, tenant: int) -> Ending:
    """Run a tenant by the tool's own Python, which has no PyTorch."""
    return run_bench(sys.executable, CELL, folder, BENCH_TENANT=str(tenant))


def open_meeting(folder: Path, tenant: int) -> Meeting:
    """Return the meeting of the tenants of `run_tenant`."""
    url = f"file://{folder}/store"
    order = Order(cell=CELL, run_id="test-1", repeat=2, attempt="a1", store_url=url, tenant=tenant, tenant_group="g")
    return Meeting(store=Store.open(url), order=order)


def test_a_tenant_beside_the_first_leaves_its_record_where_all_meet(tmp_path: Path) -> None:
    meeting = open_meeting(tmp_path, 0)
    meeting.call()
    ending = run_tenant(tmp_path, 1)
    assert (ending.exit_code, ending.result) == (1, None)
    record = TenantRecord.model_validate_json(meeting.store.get(meeting.find_key("end", 1)))
    assert record.error is not None
    assert (record.tenant, record.status, record.error.kind) == (1, "failed", "missing-framework")


def test_tenants_do_not_wait_for_a_first_one_whose_container_has_no_gpu(tmp_path: Path) -> None:
    cell = make_cell(device="gpu", tenants=2)
    first = run_bench(sys.executable, cell, tmp_path, BENCH_TENANT="0", CUDA_VISIBLE_DEVICES="")
    second = run_bench(sys.executable, cell, tmp_path, BENCH_TENANT="1", CUDA_VISIBLE_DEVICES="")
    assert (first.exit_code, second.exit_code) == (EXIT_NODE_FAULT, EXIT_TRY_AGAIN)
    assert "no NVIDIA GPU can be seen" in first.output
    assert "error: group g has met without this process" in second.output
    assert (first.result, second.result) == (None, None)

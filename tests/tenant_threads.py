"""Run the tenants of one repeat in threads of this process, each with a stub for its framework."""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.probes.cpu import THREAD_VARIABLES
from bench.schema import Cell, Result, TenantRecord
from bench.store import Store
from bench.tenants.tenant import Tenant
from bench.worker.attempt import Attempt
from bench.worker.request import Order
from factories import make_cell
from stub_framework import StubFramework

STEP_SECONDS = 0.01
WINDOW_SECONDS = 2.0
"""Long enough for a step of each tenant though the machine is busy: each reads the counters of all processes first."""


class SleepingFramework(StubFramework):
    """A framework whose steps take their time without a core, so that tenants do not disturb each other."""

    def __init__(self, *, step_seconds: float = STEP_SECONDS, **errors: Any) -> None:
        super().__init__(**errors)
        self._step_seconds = step_seconds

    def run_step(self) -> None:
        super().run_step()
        time.sleep(self._step_seconds)


@dataclass(frozen=True, kw_only=True)
class Group:
    """The tenants of one repeat."""

    cell: Cell
    store: Store
    frameworks: Mapping[int, StubFramework]
    """Of each tenant; one that is not here never comes."""

    def run(self) -> Result:
        """Run all tenants to their end, each of the others after it was called; return tenant 0's Result."""
        with ThreadPoolExecutor(self.cell.tenants) as pool:
            ends = {tenant: pool.submit(self._run_tenant, tenant) for tenant in self.frameworks}
            return {tenant: end.result() for tenant, end in ends.items()}[0]

    def _run_tenant(self, tenant: int) -> Result:
        threading.current_thread().name = str(tenant)
        order = Order(
            cell=self.cell,
            run_id="r",
            repeat=1,
            attempt=f"a{tenant}",
            store_url=self.store.url,
            tenant=tenant,
            tenant_group="g",
        )
        part = Tenant(order, self.store)
        if tenant > 0:
            part.meeting.await_call()
        result = Attempt(order, part).run()
        if tenant > 0:
            part.meeting.leave(part.make_record(result))
        return result


def make_group(folder: Path, monkeypatch: pytest.MonkeyPatch, *frameworks: StubFramework, **fields: Any) -> Group:
    """Return a group with these frameworks, one for each tenant in their order."""
    for name in (*THREAD_VARIABLES, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")  # attempts set them for good
    cell = make_cell(
        **(
            {"tenants": len(frameworks), "min_seconds": WINDOW_SECONDS, "num_steps": 3, "max_warmup_seconds": 1e-3}
            | fields
        )
    )
    by_tenant = dict(enumerate(frameworks))
    # Each tenant has a thread of its own, which bears its number.
    monkeypatch.setattr(
        "bench.worker.attempt.load_framework", lambda cell, num_threads: by_tenant[int(threading.current_thread().name)]
    )
    return Group(cell=cell, store=Store.open(f"file://{folder}/store"), frameworks=by_tenant)


def list_records(result: Result) -> list[TenantRecord]:
    assert result.tenancy is not None
    return list(result.tenancy.tenants)

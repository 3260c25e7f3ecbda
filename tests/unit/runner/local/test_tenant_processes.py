"""runner.local.process: the processes of tenants end together, however one of them ends."""

import os
from pathlib import Path
from typing import Any

import pytest

from local_processes import await_death, end_time_when, read_pids
from runner.local.process import ProcessEnd, run_processes
from workspace import HANG_GUARD_SECONDS

TENANT = "TENANT"
FOREVER = "sleep 1000 & echo $! $$ >> {pids}; wait"


def run(script: str, number: int = 3, **options: Any) -> list[tuple[int, ProcessEnd]]:
    """Run a shell script for each tenant, whose number is in its environment; return the ends in their order."""
    ended: list[tuple[int, ProcessEnd]] = []
    given: dict[str, Any] = {"timeout_seconds": HANG_GUARD_SECONDS, "on_tick": lambda: None}
    ends = run_processes(
        ["/bin/sh", "-c", script],
        variables=[{**os.environ, TENANT: str(tenant)} for tenant in range(number)],
        on_end=lambda tenant, end: ended.append((tenant, end)),
        **(given | options),
    )
    assert [end for _, end in sorted(ended, key=lambda item: item[0])] == ends
    return ended


def test_every_tenant_has_its_own_variables_and_its_own_last_words() -> None:
    ended = run(f"echo I am ${TENANT}; exit ${TENANT}")
    assert {(tenant, end.returncode, end.tail) for tenant, end in ended} == {
        (0, 0, "I am 0\n"),
        (1, 1, "I am 1\n"),
        (2, 2, "I am 2\n"),
    }


def test_a_tenants_end_is_told_while_the_others_run(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"[ ${TENANT} = 2 ] && kill -9 $$; while [ ! -e {told} ]; do sleep 0.01; done"
    ended: list[int] = []

    def tell(tenant: int, end: ProcessEnd) -> None:
        ended.append(end.returncode)
        told.touch()

    run_processes(
        ["/bin/sh", "-c", script],
        variables=[{**os.environ, TENANT: str(tenant)} for tenant in range(3)],
        timeout_seconds=HANG_GUARD_SECONDS,
        on_tick=lambda: None,
        on_end=tell,
    )
    assert ended == [-9, 0, 0]


def test_all_are_killed_with_all_they_started_when_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    end_time_when(lambda: pids.exists() and len(read_pids(pids)) == 6, monkeypatch, "runner.local.process")
    ended = run(FOREVER.format(pids=pids))
    assert [(tenant, end.timed_out, end.returncode) for tenant, end in ended] == [(n, True, -9) for n in range(3)]
    assert len(read_pids(pids)) == 6
    await_death(read_pids(pids))


def test_the_others_may_not_outlive_tenant_0_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.local.process.LAST_SECONDS", 0.1)
    pids = tmp_path / "pids"
    wait = f'until [ "$(cat {pids} | wc -l)" = 2 ]; do sleep 0.01; done'
    ended = run(f"[ ${TENANT} = 0 ] && {{ {wait}; exit 0; }} 2> /dev/null; {FOREVER.format(pids=pids)}")
    assert [(tenant, end.returncode) for tenant, end in ended] == [(0, 0), (1, -9), (2, -9)]
    await_death(read_pids(pids))


def test_one_limit_holds_for_the_memory_of_all_together() -> None:
    # Each takes about 150 MB, so that two of them are below the limit and three are not.
    take = "exec python3 -c \"import time; kept = bytearray(150_000_000); kept[::4096] = b'x' * len(kept[::4096]); "
    ended = run(take + 'time.sleep(1000)"', memory_limit_bytes=400_000_000)
    assert [end.over_limit for _, end in ended] == [True] * 3

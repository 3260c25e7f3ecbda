"""runner.processes: signals wait until a process is known, and none is lost."""

import os
import signal

import pytest

from runner.processes import INTERRUPTS, delay_interrupts


@pytest.mark.parametrize("number", INTERRUPTS)
def test_an_interrupt_at_the_start_waits_until_the_process_is_known(number: int) -> None:
    handled: list[int] = []
    previous = signal.signal(number, lambda number, frame: handled.append(number))
    try:
        with delay_interrupts():
            os.kill(os.getpid(), number)
            assert handled == []
        assert handled == [number]
        os.kill(os.getpid(), number)
        assert handled == [number, number]
    finally:
        signal.signal(number, previous)

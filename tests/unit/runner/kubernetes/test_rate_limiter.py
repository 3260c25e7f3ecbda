"""How many requests run at once, and when."""

import threading
import time

from runner.kubernetes.connection import RateLimiter


def test_each_request_for_a_pause_halves_what_runs_at_once_down_to_one() -> None:
    rate_limiter = RateLimiter(32)
    allowed = []
    for _ in range(7):
        rate_limiter.slow_down(None)
        allowed.append(rate_limiter.num_allowed)

    assert allowed == [16, 8, 4, 2, 1, 1, 1]


def test_it_recovers_by_one_for_each_round_that_went_well() -> None:
    rate_limiter = RateLimiter(8)
    rate_limiter.slow_down(None)
    for _ in range(4):  # a round of four
        rate_limiter.speed_up()

    assert 4 <= rate_limiter.num_allowed <= 5
    for _ in range(5 + 6 + 7 + 8):
        rate_limiter.speed_up()
    assert rate_limiter.num_allowed == 8


def test_no_more_than_are_allowed_run_at_once() -> None:
    rate_limiter = RateLimiter(4)
    rate_limiter.slow_down(None)
    running, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal running, most
        for _ in range(50):
            with rate_limiter.hold():
                with lock:
                    running += 1
                    most = max(most, running)
                with lock:
                    running -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)

    assert not any(thread.is_alive() for thread in threads)
    assert 1 <= most <= 2


def test_nothing_starts_before_the_time_that_the_server_asked_for() -> None:
    rate_limiter = RateLimiter(2)
    began = time.monotonic()
    rate_limiter.slow_down(0.2)

    with rate_limiter.hold():
        assert 0.2 <= time.monotonic() - began

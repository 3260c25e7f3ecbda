"""Simulates how often verdicts on a series of steps are right: `noisy`, and two levels.

Prints the tables of docs/measurement.md: the share of windows with a known spread that are called noisy or not, and how
often two levels are found where there are some and where there are none. Needs no framework and takes half a minute:
PYTHONPATH=images/bench/src .venv/bin/python benchmarks/verdict_power.py
"""

import math
from collections.abc import Callable
from random import Random
from statistics import median

from bench.measure.levels import find_levels
from bench.verdicts.checks import MAD_TO_DEVIATION, MAX_SPREAD, measure_spread

SEED = 20261122
NUM_WINDOWS = 4000
NUM_LEVEL_WINDOWS = 1000
SPREADS = (0.05, 0.10, 0.20)
NUMBERS_OF_STEPS = (3, 6, 10, 30)
# Two levels: so many steps in windows of so many seconds, each level for this long on average.
WINDOWS = ((30, 3.0), (60, 4.0), (100, 10.0))
DWELL_SECONDS = 2.0
Steps = list[float]
Make = Callable[[Random, int], Steps]


def main() -> None:
    """Print both tables."""
    print_spreads()
    print_false_alarms()
    print_detections()


def print_spreads() -> None:
    """Print the share of windows that pass the check of the spread, without and with the factor for few steps."""
    print(f"\nshare of windows that are not noisy (bound {MAX_SPREAD:.0%}); steps are lognormal")
    print("| steps | " + " | ".join(f"true spread {spread:.0%}" for spread in SPREADS) + " | without the factor |")
    print("|---|" + "---|" * (len(SPREADS) + 1))
    for num_steps in NUMBERS_OF_STEPS:
        shares = [share_passed(measure_spread, num_steps, spread) for spread in SPREADS]
        plain = [share_passed(measure_plain_spread, num_steps, spread) for spread in SPREADS]
        texts = [f"{share:.0%}" for share in shares] + [", ".join(f"{share:.0%}" for share in plain)]
        print(f"| {num_steps} | " + " | ".join(texts) + " |")


def share_passed(measure: Callable[[Steps], float], num_steps: int, spread: float) -> float:
    """Return the share of windows whose measured spread is within the bound."""
    random = Random(SEED)
    windows = ([math.exp(random.gauss(0.0, spread)) for _ in range(num_steps)] for _ in range(NUM_WINDOWS))
    return sum(measure(steps) <= MAX_SPREAD for steps in windows) / NUM_WINDOWS


def measure_plain_spread(steps: Steps) -> float:
    """Return the spread as it was measured before, too small on average for few steps."""
    middle = median(steps)
    return MAD_TO_DEVIATION * median(abs(step - middle) for step in steps) / middle


def print_false_alarms() -> None:
    """Print how often two levels are seen in series that have none."""
    series: dict[str, Make] = {
        "independent, spread 5 %": lambda random, number: wander(random, number, 0.05, 0.0),
        "independent, spread 20 %": lambda random, number: wander(random, number, 0.20, 0.0),
        "autocorrelation 0.5, spread 5 %": lambda random, number: wander(random, number, 0.05, 0.5),
        "autocorrelation 0.9, spread 5 %": lambda random, number: wander(random, number, 0.05, 0.9),
        "spread 2 %, one step in ten 1.5 times as long": add_outliers,
        "a drift of 20 %, spread 1 %": drift,
    }
    numbers = (20, 40, 100, 300)
    print("\nshare of windows in which two levels are seen although there are none")
    print("| series | " + " | ".join(f"{number} steps" for number in numbers) + " |")
    print("|---|" + "---|" * len(numbers))
    for name, make in series.items():
        random = Random(SEED)
        shares = [
            sum(find_levels(make(random, number)) is not None for _ in range(NUM_LEVEL_WINDOWS)) / NUM_LEVEL_WINDOWS
            for number in numbers
        ]
        print(f"| {name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")


def print_detections() -> None:
    """Print how often two levels are found where steps jump, and the smaller level has a tenth of the steps."""
    print("\nshare of windows in which two levels are found")
    print("| jump, spread within | " + " | ".join(f"{n} steps in {s:.0f} s" for n, s in WINDOWS) + " |")
    print("|---|" + "---|" * len(WINDOWS))
    for jump in (0.10, 0.15, 0.20):
        for spread in (0.01, 0.02, 0.03, 0.05):
            random = Random(SEED)
            shares = [share_found(random, number, seconds, jump, spread) for number, seconds in WINDOWS]
            print(f"| {jump:.0%}, {spread:.0%} | " + " | ".join(f"{share:.0%}" for share in shares) + " |")


def share_found(random: Random, num_steps: int, seconds: float, jump: float, spread: float) -> float:
    """Return the share of windows found among those in which each level has at least a tenth of the steps."""
    found = []
    for _ in range(NUM_LEVEL_WINDOWS):
        are_high = switch(random, num_steps, seconds)
        if 0.1 * num_steps <= sum(are_high) <= 0.9 * num_steps:
            steps = [(1 + jump * is_high) * math.exp(random.gauss(0.0, spread)) for is_high in are_high]
            found.append(find_levels(steps) is not None)
    return sum(found) / len(found)


def switch(random: Random, num_steps: int, seconds: float) -> list[bool]:
    """Return on which level each step is; a level lasts DWELL_SECONDS on average, exponentially distributed."""
    is_high, until = random.random() < 0.5, random.expovariate(1 / DWELL_SECONDS)
    are_high = []
    for number in range(num_steps):
        while number * seconds / num_steps > until:
            is_high, until = not is_high, until + random.expovariate(1 / DWELL_SECONDS)
        are_high.append(is_high)
    return are_high


def wander(random: Random, number: int, spread: float, correlation: float) -> Steps:
    """Return lognormal steps, each correlated with the one before."""
    value, steps = random.gauss(0.0, spread), []
    for _ in range(number):
        steps.append(math.exp(value))
        value = correlation * value + random.gauss(0.0, spread * math.sqrt(1 - correlation**2))
    return steps


def add_outliers(random: Random, number: int) -> Steps:
    """Return steps of which one in ten, at random, takes 1.5 times as long."""
    return [random.gauss(1.0, 0.02) * (1.5 if random.random() < 0.1 else 1.0) for _ in range(number)]


def drift(random: Random, number: int) -> Steps:
    """Return steps that grow by a fifth from the first to the last."""
    return [1 + 0.2 * index / (number - 1) + random.gauss(0.0, 0.01) for index in range(number)]


if __name__ == "__main__":
    main()

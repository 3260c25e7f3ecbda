"""Fuzz for a time: `python -m fuzz` draws cases at random until it is over, and keeps the smallest of each finding."""

import argparse
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz.cases import Case, load_case
from fuzz.driver import STRICT, Driver
from fuzz.judging import Fault
from fuzz.targets import Target, list_targets

FINDINGS = Path(".fuzz")
ROUND_EXAMPLES = 40
MAX_SHRINKS = 60
"""Runs that are spent on a smaller case of one finding."""
TELL_SECONDS = 60.0
REAL_SHARE = 0.01
"""Of cases that run in a process of their own: each costs a start."""


class Hunt:
    """Looks for cases with faults that were not found before."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.found: dict[str, tuple[Case, Fault]] = {}
        """By signature: the smallest case."""
        self.num_cases: Counter[str] = Counter()

    def hunt(self, target: Target, number: int) -> None:
        """Try ROUND_EXAMPLES cases of a target; a new finding is made smaller, and written down."""
        wanted, left = "", MAX_SHRINKS

        @seed(number)
        @settings(max_examples=ROUND_EXAMPLES, database=None, deadline=None, phases=(Phase.generate, Phase.shrink),
                  suppress_health_check=list(HealthCheck), report_multiple_bugs=False)  # fmt: skip
        @given(target.draw_cases())
        def look(case: Case) -> None:
            nonlocal wanted, left
            if wanted:
                left -= 1
            if left < 0:
                return
            self.num_cases[target.name] += 1
            faults = {fault.signature: fault for fault in self.driver.run(case, is_real=random.random() < REAL_SHARE)}
            wanted = wanted or next((name for name in faults if name not in self.found), "")
            if wanted in faults:
                self._keep(case, faults[wanted])
                raise AssertionError(wanted)

        try:
            look()
        except Exception as error:  # noqa: BLE001  (hypothesis raises what the function raised, or that it did not again)
            if not wanted:
                raise RuntimeError(f"{target.name}: {type(error).__name__}: {str(error)[:500]}") from error
        if wanted:
            case, fault = self.found[wanted]
            path = case.save(FINDINGS)
            print(f"\n{fault.signature}\n  {fault.detail.strip()[-1500:]}\n  again: make fuzz CASE={path}", flush=True)

    def _keep(self, case: Case, fault: Fault) -> None:
        known = self.found.get(fault.signature)
        if known is None or len(case.content) <= len(known[0].content):
            self.found[fault.signature] = (case, fault)


def main() -> None:
    """Fuzz, or run one case again."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long; default: %(default)s")
    parser.add_argument("--only", default="", help="names of targets, with commas; default: all")
    parser.add_argument("--seed", type=int, default=None, help="of the order of the rounds; default: another each time")
    parser.add_argument("--case", type=Path, default=None, help="run this case once, and say what does not hold")
    options = parser.parse_args()
    if options.case is not None:
        sys.exit(_run_again(options.case))
    seed_of_all = options.seed if options.seed is not None else int.from_bytes(os.urandom(4))
    targets = [target for name, target in list_targets().items() if not options.only or name in options.only.split(",")]
    print(f"fuzzing {len(targets)} inputs for {options.seconds:,.0f} s; SEED={seed_of_all}", flush=True)
    sys.exit(_hunt(targets, options.seconds, random.Random(seed_of_all)))


def _hunt(targets: list[Target], seconds: float, rng: random.Random) -> int:
    end = time.monotonic() + seconds
    told = time.monotonic()
    with Driver(STRICT) as driver:
        hunt = Hunt(driver)
        while time.monotonic() < end:
            rng.shuffle(targets)
            for target in targets:
                if time.monotonic() < end:
                    hunt.hunt(target, rng.getrandbits(32))
                if time.monotonic() > told + TELL_SECONDS:
                    told = time.monotonic()
                    print(f"{hunt.num_cases.total():,} cases, {len(hunt.found)} findings", flush=True)
    print(f"\n{hunt.num_cases.total():,} cases, {len(hunt.found)} findings")
    for name, number in sorted(hunt.num_cases.items()):
        print(f"  {name:<18}{number:>8,}")
    return 1 if hunt.found else 0


def _run_again(path: Path) -> int:
    case = load_case(path)
    with Driver(STRICT) as driver:
        faults = driver.run(case, is_real=True) + driver.run(case)
    for fault in faults:
        print(f"{fault.signature}\n{fault.detail}\n")
    print(f"{path}: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    main()

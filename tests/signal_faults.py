"""Sends signals to commands at random moments, and says what was lost, left behind or said in the wrong way."""

import os
import random
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from fault_outcomes import FaultOutcome
from fuzz.judging import take_inventory
from fuzz.workspaces import RUN_A, RUN_B, write_workspace
from kubeconfigs import write_kubeconfig
from warm_processes import Ending, WarmProcesses

BEYOND = 1.1
"""Of the time that an undisturbed command takes: a few get their signal when they have ended."""
HANGING_SECONDS = 1.5
"""Of a command that waits for a program that never ends: within it the program is started and waited for."""
TOGETHER_SECONDS = 0.05
"""Between two signals, at the most."""
SEQUENCES: Mapping[str, tuple[signal.Signals, ...]] = {
    "Ctrl-C": (signal.SIGINT,),
    "Ctrl-C twice": (signal.SIGINT, signal.SIGINT),
    "SIGTERM": (signal.SIGTERM,),
    "SIGHUP": (signal.SIGHUP, signal.SIGHUP),  # the shell's and the kernel's
    "SIGTERM and Ctrl-C": (signal.SIGTERM, signal.SIGINT),
}
ENDING = [
    f"collect {RUN_A} --output out",
    f"collect {RUN_A} --output out --rebuild",
    f"compare {RUN_A} {RUN_B} --markdown --output out/compare.md",
    f"claims {RUN_A} {RUN_B} --output out/claims.md",
    f"plot roofline {RUN_A} --output out/roofline.svg",
    f"cost {RUN_B} --prices prices.yaml --machine gpu=g1 --markdown --output out/cost.md",
    "forecast --table gpus.csv --year 2030 --plot out/forecast.html",
    "watch --confirmation out/again.yaml --metrics-file out/night.prom",
    f"status {RUN_A}",
    "run matrix.yaml --dry-run",
]
HANGING = [
    "images sbom pytorch",
    f"status {RUN_A} --on lab",
    "probe conv6 --device cpu --python bin/docker",
]
"""They wait for a program: `docker`, what gives the credentials of a kubeconfig, an interpreter."""
HANGING_PROGRAM = "#!/bin/sh\nsleep 1000\nexit 1\n"
MARK = "BENCHMATRIX_TEST_MARK"
"""A variable of the commands, by which all that they start is found."""
END_SECONDS = 30.0
"""How long a killed process is waited for: the kernel needs a moment."""


def send_signals(folder: Path, tool: WarmProcesses, *, num_faults: int, seed: int) -> FaultOutcome:
    """Send signals to one command after the other, then look at what they have left."""
    outcome, chance = FaultOutcome(name="signals"), random.Random(seed)
    place, mark = folder / "signals", uuid4().hex
    place.mkdir()
    _set_up(place)
    variables = _make_variables(place, mark)
    spans = {}
    for words in ENDING:
        begun = time.monotonic()
        ending = tool.call("benchmatrix", words.split(), place, variables)
        outcome.check(
            ending.exit_code in (0, 1, 3), f"undisturbed, {words} ended with {ending.exit_code}: {ending.output}"
        )
        spans[words] = BEYOND * (time.monotonic() - begun)
    spans |= dict.fromkeys(HANGING, HANGING_SECONDS)
    before = _read_inputs(place)
    while outcome.num_faults < num_faults:
        words, sequence = chance.choice([*ENDING, *HANGING]), chance.choice(list(SEQUENCES))
        pid = tool.start("benchmatrix", words.split(), place, variables)
        early = tool.wait(chance.uniform(0.0, spans[words]))
        ending = early or _send(tool, pid, SEQUENCES[sequence], chance)
        if early is None:
            outcome.num_faults += 1
            outcome.facts[sequence] += 1
        else:
            outcome.facts["ended before the signal"] += 1
        _judge(outcome, f"{words} and {sequence}", ending, SEQUENCES[sequence])
        _judge_rest(outcome, f"{words} and {sequence}", place, before, mark)
    return outcome


def _set_up(place: Path) -> None:
    write_workspace(place)
    (place / "bin" / "docker").write_text(HANGING_PROGRAM)
    write_kubeconfig(place / "kubeconfig", context="lab", plugin="./bin/docker")
    (place / "lock").mkdir()
    (place / "tmp").mkdir()


def _make_variables(place: Path, mark: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    own = {"BENCHMATRIX_LOCK_DIR": "lock", "KUBECONFIG": "kubeconfig", "HOME": "home", "TMPDIR": "tmp"}
    placed = {name: str(place / path) for name, path in own.items()}
    return inherited | placed | {MARK: mark, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}


def _send(tool: WarmProcesses, pid: int, numbers: Sequence[signal.Signals], chance: random.Random) -> Ending:
    """Send the signals to a process, or to its group as a terminal does, and return how it ended."""
    send = chance.choice((os.kill, os.killpg))  # it leads a group of its own
    for place, number in enumerate(numbers):
        if place:
            time.sleep(chance.uniform(0.0, TOGETHER_SECONDS))
        with suppress(ProcessLookupError):
            send(pid, number)
    ending = tool.wait(END_SECONDS)
    if ending is None:
        return tool.kill_after(pid, 0.0)
    return ending


def _judge(outcome: FaultOutcome, what: str, ending: Ending, numbers: Sequence[signal.Signals]) -> None:
    codes = {0, 1, 2, 3, *(128 + number for number in numbers)}
    outcome.check(ending.exit_code in codes, f"{what}: exit code {ending.exit_code}: {ending.output[-1500:]}")
    outcome.check("Traceback" not in ending.output, f"{what}: a traceback: {ending.output[-1500:]}")
    outcome.check(ending.exit_code != 2, f"{what}: exit code 2: {ending.output[-500:]}")


def _judge_rest(outcome: FaultOutcome, what: str, place: Path, before: Mapping[str, str], mark: str) -> None:
    """Note what the command changed that it only reads, and what it left: processes and temporary files."""
    after = _read_inputs(place)
    changed = [name for name, content in before.items() if after.get(name) != content]
    outcome.check(not changed, f"{what}: lost or changed: {changed[:5]}")
    left = _await_end(mark)
    outcome.check(not left, f"{what}: processes left: {left}")
    for path in place.rglob(".benchmatrix-*.tmp"):
        outcome.facts["temporary files left"] += 1
        path.unlink()


def _read_inputs(place: Path) -> dict[str, str]:
    """Return what the commands read and must leave as it is, by name."""
    made = ("out/", "results/tables/", "results/nights/", "home/", "tmp/", "lock/")
    return {name: content for name, content in take_inventory(place).items() if not name.startswith(made)}


def _await_end(mark: str) -> list[str]:
    """Return the commands of the processes that have the mark in their environment and do not end."""
    deadline = time.monotonic() + END_SECONDS
    while found := _list_marked(mark):
        if time.monotonic() > deadline:
            for pid in found:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            return [*found.values()]
        time.sleep(0.02)
    return []


def _list_marked(mark: str) -> dict[int, str]:
    found, word = {}, f"{MARK}={mark}".encode()
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found[int(pid)] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found

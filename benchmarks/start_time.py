"""Measure the CPU time that the command line takes to start: its help, its version, completion, the help of commands.

Each is a process of its own, with bytecode compiled before; the least of several is printed, since a busy core only
adds. From the checkout, half a minute: .venv/bin/python benchmarks/start_time.py
"""

import os
import resource
import subprocess
import sys
from collections.abc import Mapping

NUM_TRIES = 5
TARGET_MILLISECONDS = 300.0
COMPLETE = "_BENCHMATRIX_COMPLETE"
PROGRAM = "import sys; sys.argv[0] = 'benchmatrix'; from runner.cli import main; main()"
"""What the installed script does; completion is by its name."""
WRITES_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""Without bytecode every process compiles its libraries anew, in up to three times the time of importing them."""
CASES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "benchmatrix --help": (("--help",), ""),
    "benchmatrix --version": (("--version",), ""),
    "completion of commands": ((), "benchmatrix re"),
    "completion of options": ((), "benchmatrix status --"),
    "completion of options of run": ((), "benchmatrix run --"),
    "benchmatrix status --help": (("status", "--help"), ""),
    "benchmatrix run --help": (("run", "--help"), ""),
}


def main() -> None:
    """Print the CPU time of each start."""
    for name, (words, typed) in CASES.items():
        milliseconds = min(measure(words, typed) for _ in range(NUM_TRIES))
        print(f"{name:<30} {milliseconds:5.0f} ms{'' if milliseconds < TARGET_MILLISECONDS else '  over the target'}")


def measure(words: tuple[str, ...], typed: str) -> float:
    """Return the milliseconds of CPU of one start, children's own children not counted."""
    variables = dict(os.environ)
    if typed:
        number = len(typed.split()) - (not typed.endswith(" "))
        variables |= {COMPLETE: "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(number)}
    return measure_program(PROGRAM, *words, variables=variables)


def measure_program(program: str, *words: str, variables: Mapping[str, str] | None = None) -> float:
    """Return the milliseconds of CPU of a program in a process of its own, the first of which writes its bytecode.

    `variables`: None for those of this process.
    """
    variables = {**(os.environ if variables is None else variables), **WRITES_BYTECODE}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program, *words], env=variables, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


if __name__ == "__main__":
    main()

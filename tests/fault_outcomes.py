"""What a program that injects faults counts: how many it injected, and whether what must hold did."""

import re
from collections import Counter
from dataclasses import dataclass, field

EXIT_CODES = (0, 1, 2, 75)
"""Of a command that nobody killed: what the README promises, less Ctrl-C."""


@dataclass
class FaultOutcome:
    """The faults of one kind, and what went wrong after them."""

    name: str
    num_faults: int = 0
    facts: Counter[str] = field(default_factory=Counter)
    """What happened how often, in words."""
    problems: list[str] = field(default_factory=list)

    def check(self, holds: bool, problem: str) -> None:
        """Note a problem unless `holds`."""
        if not holds:
            self.problems.append(f"after fault {self.num_faults}: {problem}")

    def check_end(self, exit_code: int, output: str) -> None:
        """Note a problem unless a command that was not killed ended in words: one message at most, no traceback."""
        num_messages = len(re.findall(r"^error:", output, re.MULTILINE))
        self.check(exit_code in EXIT_CODES, f"exit code {exit_code}: {output[-1500:]}")
        self.check("Traceback" not in output and "panicked" not in output, f"a traceback: {output[-1500:]}")
        self.check(num_messages == (exit_code in (2, 75)), f"{num_messages} messages with code {exit_code}: {output}")

    def describe(self) -> str:
        """Return the outcome in lines to print."""
        facts = "; ".join(f"{number} {what}" for what, number in sorted(self.facts.items()))
        verdict = "nothing lost, nothing twice" if not self.problems else f"MISSED, {len(self.problems)} problems"
        lines = [f"{self.name}: {self.num_faults} faults; {facts}; {verdict}", *self.problems[:20]]
        return "\n".join(lines)

"""Tells the user in time that others disturb a run: at its first repeat, and when two in a row were contaminated."""

from collections.abc import Callable

from bench.schema import Result
from runner.local.machine_load import LoadReading, OtherLoad, compare_readings
from runner.matrix.plan import Repeat

MIN_LOOK_SECONDS = 0.5
"""The kernel counts CPU time in hundredths of a second: over half a second each core is exact to 2 %."""
NUM_IN_A_ROW = 2
"""One contaminated repeat may be a passing backup; after two, the next will most likely be so too."""


class DisturbanceWatch:
    """Watches what others do while repeats are measured, and says so once at each of two occasions. Never blocks.

    `retry_command`: measures the contaminated repeats of the run again. `say`: is given each sentence.
    """

    def __init__(
        self,
        retry_command: str,
        say: Callable[[str], None],
        take: Callable[[], LoadReading | None] = LoadReading.take,
    ) -> None:
        self._retry_command = retry_command
        self._say = say
        self._take = take
        self._before: LoadReading | None = None
        self._has_looked = False
        self._num_in_a_row = 0
        self._has_warned = False

    def start_repeat(self) -> None:
        """Note what everything has done so far."""
        self._before = None if self._has_warned else self._take()

    def tick(self, repeat: Repeat) -> None:
        """Look once, about a second after the first repeat has begun, whether others keep cores busy."""
        if self._has_looked or self._before is None:
            return
        after = self._take()
        if after is None or after.at - self._before.at < MIN_LOOK_SECONDS:
            return
        self._has_looked = True
        load = compare_readings(self._before, after)
        if repeat.planned.cell.device == "cpu" and load.is_disturbing:
            self._say(
                f"others keep {load.busy_cores:.1f} of {load.num_cores} cores busy now ({load.describe_busiest()}): "
                "repeats that they disturb will be contaminated and not count"
            )

    def finish_repeat(self, result: Result) -> None:
        """Count the contaminated repeats in a row, and warn after the second."""
        self._has_looked = True  # a first repeat that was shorter than the look says by its verdict how it was
        is_contaminated = result.validity is not None and result.validity.is_contaminated
        self._num_in_a_row = self._num_in_a_row + 1 if is_contaminated else 0
        if self._num_in_a_row < NUM_IN_A_ROW or self._has_warned:
            return
        self._has_warned = True
        after = None if self._before is None else self._take()
        load = None if self._before is None or after is None else compare_readings(self._before, after)
        self._say(
            f"{NUM_IN_A_ROW} repeats in a row were contaminated and do not count{_name_busiest(load)}. End what "
            "disturbs and let the run go on, or press Ctrl-C: what is finished is kept. This measures the contaminated "
            f"repeats again, when the machine is quiet:\n  {self._retry_command}"
        )


def _name_busiest(load: OtherLoad | None) -> str:
    """Return who kept the cores busy; nothing where nobody that is still there did enough to disturb a repeat."""
    if load is None or not load.busiest or not load.is_disturbing:
        return ""
    return f"; busiest beside the run: {load.describe_busiest()}"

"""Find and load scenarios; whatever is wrong becomes one error with file, line and key."""

import os
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from bench.errors import UserError
from collector.access.job_streams import compute_offered_hours
from collector.access.scenario import MAX_WEEKS, MIN_WEEKS, Group, Scenario
from collector.access.shipped import list_shipped_scenarios
from collector.access.working_time import WorkingTime
from runner.yaml_files.errors import ErrorKind
from runner.yaml_files.node import Node
from runner.yaml_files.reading import read_yaml
from runner.yaml_files.validation import NodeValidator
from runner.yaml_files.wording import suggest_word

DOCUMENTATION = "docs/access.md"
EXPECTED = "a scenario; give it the keys 'question', 'job_hours_on', 'kinds', 'users' and 'alternatives'"
MAX_JOBS = 2_000_000
"""In all simulated weeks: at 0.1 ms each, on a core of an AMD EPYC, three minutes; more is a slip of a digit."""
_VALIDATOR = NodeValidator(TypeAdapter(Scenario), is_null_absent=True, documentation=DOCUMENTATION)


def load_scenario(name: str, *, weeks: int | None = None) -> tuple[Scenario, Node]:
    """Return a shipped scenario or a YAML file's, with its tree; UserError with file, line and key if it is wrong.

    The tree says where a value stands, for errors that come to light only when figures and prices are looked up.
    `weeks` replaces those of the scenario.
    """
    shipped = list_shipped_scenarios()
    if name in shipped:
        return _load(shipped[name], shipped[name].name, weeks)
    if Path(name).suffix not in (".yaml", ".yml") and not os.path.isdir(name):
        raise UserError(
            f"{name}: is no scenario; {suggest_word(name, list(shipped))}, or give the path of a .yaml file"
        )
    return _load(Path(name), name, weeks)


def _load(path: Path, file: str, weeks: int | None) -> tuple[Scenario, Node]:
    tree = _make_lists(read_yaml(path, file, expected=EXPECTED))
    scenario = _replace_weeks(_VALIDATOR.validate(tree), weeks)
    num_jobs = estimate_num_jobs(scenario)
    if num_jobs > MAX_JOBS:
        message = (
            f"about {num_jobs:,.0f} jobs would be simulated, more than {MAX_JOBS:,}; lower weeks, warm_up_weeks or the "
            "number of users, jobs, alternatives or policies"
        )
        raise tree.find_nearest("weeks").error(ErrorKind.TOO_LARGE, message, key="weeks")
    return scenario, tree


def _replace_weeks(scenario: Scenario, weeks: int | None) -> Scenario:
    if weeks is None:
        return scenario
    if not MIN_WEEKS <= weeks <= MAX_WEEKS:
        raise UserError(f"--weeks {weeks}: expected {MIN_WEEKS} to {MAX_WEEKS}")
    return scenario.model_copy(update={"weeks": weeks})


def _make_lists(tree: Node) -> Node:
    """Return the tree with `job_hours: 3` of a group written as the list `[3]`; a wrong value too, to be named."""
    users = tree.find_child("users")
    if not isinstance(tree.value, dict):
        raise tree.error(ErrorKind.WRONG_TYPE, f"found no keys, expected {EXPECTED}")
    if users is None or not isinstance(users.value, list):
        return tree
    groups = [_make_list_of_hours(group) for group in users.value]
    return replace(tree, value={**tree.value, "users": replace(users, value=groups)})


def _make_list_of_hours(group: Node) -> Node:
    hours = group.find_child("job_hours")
    if not isinstance(group.value, dict) or hours is None or not isinstance(hours.value, int | float | str):
        return group
    return replace(group, value={**group.value, "job_hours": replace(hours, value=[hours])})


def estimate_num_jobs(scenario: Scenario) -> float:
    """Return about how many jobs are submitted in all weeks, warm-ups included, of all choices together."""
    weeks = scenario.weeks * (1 + scenario.warm_up_weeks)
    per_week = sum(_estimate_num_jobs_per_week(group) for group in scenario.users)
    return weeks * per_week * len(scenario.alternatives) * len(scenario.policies)


def _estimate_num_jobs_per_week(group: Group) -> float:
    offered = compute_offered_hours(group)
    if offered is not None:
        return offered * len(group.job_hours) / sum(group.job_hours)
    hours = WorkingTime(group.working_hours, group.working_days).hours_per_week
    # As if jobs took no time: the most that can be.
    return group.number * hours / (group.think_hours or 1.0)


def describe_shipped_scenario(name: str) -> str:
    """Return the question of a shipped scenario."""
    return load_scenario(name)[0].question

"""Small laboratories for tests of the simulation of access."""

from typing import Any

from collector.access.scenario import Alternative, Buy, Group, Rent, Scenario
from collector.access.simulation import Choice


def make_group(**given: Any) -> Group:
    """Return users with jobs of an hour, two a day, unless told otherwise."""
    rhythm = {} if "think_hours" in given else {"jobs_per_day": 2.0}
    return Group(**({"name": "users", "job_hours": (1.0,)} | rhythm | given))


def make_choice(*groups: Group, num_gpus: int = 1, rent: Rent | None = None, **given: Any) -> Choice:
    """Return GPUs that are bought and always there, or rented ones, used exclusively."""
    way: dict[str, Any] = {"buy": Buy(price=1.0, lifetime_years=1.0)} if rent is None else {"rent": rent}
    defaults: dict[str, Any] = {
        "alternative": Alternative(name="GPUs", kind="T4", gpus=num_gpus, **way),
        "policy": "exclusive",
        "groups": groups or (make_group(),),
        "warm_up_weeks": 1,
        "seed": 1,
    }
    return Choice(**(defaults | given))


def describe_scenario(**given: Any) -> dict[str, Any]:
    """Return a scenario as YAML has it: one H100 bought against T4s rented, two groups of users."""
    return {
        "question": "Buy or rent?",
        "job_hours_on": "T4",
        "kinds": {
            "T4": {"samples_per_second": 250.0},
            "H100": {"samples_per_second": 2500.0, "slowdowns": {"mps": {2: 1.5, 4: 2.8}}},
        },
        "users": [
            {"name": "students", "number": 3, "job_hours": [1.0, 4.0], "jobs_per_day": 1.0},
            {"name": "staff", "job_hours": [2.0], "think_hours": 4.0},
        ],
        "alternatives": [
            {"name": "buy", "kind": "H100", "gpus": 1, "buy": {"price": 26089.0, "lifetime_years": 5.0}},
            {"name": "rent", "kind": "T4", "gpus": 4, "rent": {"price_per_hour": 0.5}},
        ],
        "weeks": 5,
    } | given


def make_scenario(**given: Any) -> Scenario:
    """Return the scenario of `describe_scenario`."""
    return Scenario.model_validate(describe_scenario(**given), strict=False)

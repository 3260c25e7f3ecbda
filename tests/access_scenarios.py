"""Small laboratories for tests of the simulation of access."""

from typing import Any

from collector.access.scenario import Alternative, Buy, Choice, Group, Kind, Policy, Rent, Scenario


def make_group(**given: Any) -> Group:
    """Return users with jobs of an hour, two a day, unless told otherwise."""
    rhythm = {} if "think_hours" in given else {"jobs_per_day": 2.0}
    return Group(**({"job_hours": (1.0,)} | rhythm | given))


def make_choice(
    *groups: Group,
    num_gpus: int = 1,
    way: Buy | Rent | None = None,
    policy: Policy = "exclusive",
    kind: dict[str, Any] | None = None,
    **given: Any,
) -> Choice:
    """Return GPUs that are bought and always there, or rented ones; `kind` says more about theirs, `given` all else."""
    way = way or Buy(price=1.0, lifetime_years=1.0)
    alternative = Alternative(
        kind="T4", gpus=num_gpus, buy=way if isinstance(way, Buy) else None, rent=way if isinstance(way, Rent) else None
    )
    defaults: dict[str, Any] = {"job_hours_on": "T4", "weeks": 5, "warm_up_weeks": 1}
    scenario = Scenario(
        question="?",
        kinds={"T4": Kind(**{"samples_per_second": 100.0} | (kind or {})), "H100": Kind(samples_per_second=1000.0)},
        users={f"group {place}": group for place, group in enumerate(groups or (make_group(),))},
        alternatives={"GPUs": alternative},
        **defaults | given,
    )
    return Choice(scenario=scenario, name="GPUs", policy=policy)


def describe_scenario(**given: Any) -> dict[str, Any]:
    """Return a scenario as YAML has it: one H100 bought against T4s rented, two groups of users."""
    return {
        "question": "Buy or rent?",
        "job_hours_on": "T4",
        "kinds": {
            "T4": {"samples_per_second": 250.0},
            "H100": {"samples_per_second": 2500.0, "slowdowns": {"mps": {2: 1.5, 4: 2.8}}},
        },
        "users": {
            "students": {"number": 3, "job_hours": [1.0, 4.0], "jobs_per_day": 1.0},
            "staff": {"job_hours": [2.0], "think_hours": 4.0},
        },
        "alternatives": {
            "buy": {"kind": "H100", "gpus": 1, "buy": {"price": 26089.29, "lifetime_years": 5.0}},
            "rent": {"kind": "T4", "gpus": 4, "rent": {"price_per_hour": 0.5}},
        },
        "weeks": 5,
    } | given


def make_scenario(**given: Any) -> Scenario:
    """Return the scenario of `describe_scenario`."""
    return Scenario.model_validate(describe_scenario(**given), strict=False)

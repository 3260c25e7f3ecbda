"""Scenarios as users write them: what is read, and errors with file, line and key."""

from pathlib import Path

import pytest

from access_scenarios import make_group
from runner.access_scenarios import SHIPPED, load_scenario
from runner.yaml_input import YamlError

TEXT = """\
question: Buy or rent?
job_hours_on: T4
kinds:
  T4: {samples_per_second: 250}
users:
  all: {number: 3, job_hours: [2], jobs_per_day: 1}
alternatives:
  rent: {kind: T4, gpus: 2, rent: {price_per_hour: 0.5}}
"""


def write(folder: Path, text: str) -> str:
    path = folder / "ours.yaml"
    path.write_text(text)
    return str(path)


def catch_error(folder: Path, text: str) -> YamlError:
    with pytest.raises(YamlError) as caught:
        load_scenario(write(folder, text))
    return caught.value


def test_a_scenario_of_eight_lines_is_enough(tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path, TEXT))
    assert scenario.users["all"].job_hours == (2.0,)
    assert scenario.policies == ("exclusive", "time-slicing", "fair-share")
    assert (scenario.weeks, scenario.currency) == (30, "USD")


USER, RENT, BUY = "jobs_per_day: 1", "{price_per_hour: 0.5}", "rent: {price_per_hour: 0.5}"
KIND = "{samples_per_second: 250}"
ERRORS = [
    ("job_hours: [2]", "job_hours: [0]", 6, "users.all.job_hours[0]"),
    (USER, f"{USER}, think_hours: 1", 6, "users.all.jobs_per_day"),
    (f", {USER}", "", 6, "users.all.jobs_per_day"),
    (USER, f"{USER}, working_hours: [18, 9]", 6, "users.all.working_hours"),
    (USER, f"{USER}, working_days: [Monday]", 6, "users.all.working_days[0]"),
    (USER, f"{USER}, quota: 1", 5, "users"),
    ("job_hours_on: T4", "job_hours_on: V100", 2, "job_hours_on"),
    ("kind: T4", "kind: T5", 8, "alternatives.rent.kind"),
    (RENT, "{price_per_hour: -1}", 8, "alternatives.rent.rent.price_per_hour"),
    (RENT, "{interruptions_per_hour: 0}", 8, "alternatives.rent.rent.interruptions_per_hour"),
    (RENT, "{machine: a}", 8, "alternatives.rent.rent"),
    (RENT, "{machine: n1-standard-4, region: nowhere}", 8, "alternatives.rent.rent"),
    (f"{RENT}}}\n", "{}}\ncurrency: EUR\n", 9, "currency"),
    (f", {BUY}", "", 8, "alternatives.rent.buy"),
    (BUY, "buy: {price: 9, lifetime_years: 1, watts: 9}", 8, "alternatives.rent.buy.electricity_per_kwh"),
    (KIND, "{samples_per_second: 250, slowdowns: {mig: {2: 2}}}", 4, "kinds.T4.slowdowns.mig"),
    (KIND, "{samples_per_second: 250, slowdowns: {mps: {1: 2}}}", 4, "kinds.T4.slowdowns.mps.1"),
    (KIND, "{source: a blog}", 4, "kinds.T4.samples_per_second"),
    ("question: Buy or rent?\n", "question: '?'\npolicies: [exclusive, mps]\n", 2, "policies"),
]


@pytest.mark.parametrize(("old", "new", "line", "key"), ERRORS)
def test_an_error_names_line_and_key(tmp_path: Path, old: str, new: str, line: int, key: str) -> None:
    assert old in TEXT
    error = catch_error(tmp_path, TEXT.replace(old, new))
    assert (error.line, error.key) == (line, key)


def test_a_scenario_with_too_many_jobs_is_refused(tmp_path: Path) -> None:
    error = catch_error(tmp_path, TEXT.replace("jobs_per_day: 1", "jobs_per_day: 100000"))
    assert "jobs would be simulated, more than 2,000,000" in error.message


def test_the_number_of_jobs_is_estimated_by_hand() -> None:
    group = make_group(number=3, job_hours=(2.0,), jobs_per_day=2.0, working_days=("mon", "tue"))
    waiting = make_group(job_hours=(2.0,), think_hours=4.0, working_hours=(8.0, 16.0))
    assert (group.jobs_per_week, waiting.jobs_per_week) == (3 * 2 * 2, 7 * 8 / 4)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_scenario_has_twenty_lines_and_all_its_prices(name: str) -> None:
    rented = [one.rent for one in load_scenario(name).alternatives.values() if one.rent is not None]
    assert all(rent.price_per_hour and "https://" in rent.source for rent in rented)
    assert len(SHIPPED[name].read_text().splitlines()) <= 20

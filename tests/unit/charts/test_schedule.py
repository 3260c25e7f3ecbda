"""When a run begins, how long it may take, and how it ends."""

from typing import Any

import pytest

from chart import find, find_pod, make_values, read_config, render
from runner.commands.exit_codes import EXIT_NOT_OK, EXIT_USER_ERROR


@pytest.mark.parametrize(
    ("said", "deadline"),
    [
        ({}, 660),
        ({"active_deadline_seconds": 500}, 500),
        ({"active_deadline_seconds": 700}, 660),
        ({"active_deadline_seconds": None}, 660),
    ],
)
def test_the_jobs_of_cells_take_no_longer_than_the_run(said: dict[str, Any], deadline: int) -> None:
    values = make_values(schedule__deadlineSeconds=600, schedule__reportSeconds=60)
    values["profile"] |= said
    assert read_config(render(values), "profile")["active_deadline_seconds"] == deadline


def test_a_run_is_not_begun_beside_another_nor_replaced_before_its_end_and_has_time_to_report() -> None:
    cronjob = find(render(make_values(schedule__deadlineSeconds=600, schedule__reportSeconds=60)), "CronJob")["spec"]
    job = cronjob["jobTemplate"]["spec"]
    assert (
        cronjob["concurrencyPolicy"],
        job["podReplacementPolicy"],
        job["activeDeadlineSeconds"],
    ) == ("Forbid", "Failed", 660)
    assert "--deadline=600" in job["template"]["spec"]["containers"][0]["args"]


def test_only_a_report_of_what_did_not_end_well_ends_a_run_as_failed() -> None:
    job = find(render(make_values()), "CronJob")["spec"]["jobTemplate"]["spec"]
    codes = {
        rule["action"]: (rule["onExitCodes"]["operator"], rule["onExitCodes"]["values"])
        for rule in job["podFailurePolicy"]["rules"]
        if "onExitCodes" in rule
    }
    assert codes == {"Ignore": ("In", [130, 143]), "FailJob": ("In", [EXIT_NOT_OK, EXIT_USER_ERROR])}


def test_cells_elsewhere_are_not_owned_by_the_run() -> None:
    """A Job cannot own what is in another namespace: the garbage collector would delete it at once."""
    here, there = (
        find_pod(render(make_values(cells__namespace=namespace)))["spec"]["containers"][0]["args"]
        for namespace in ("", "elsewhere")
    )
    assert "--owner=$(JOB_NAME)/$(JOB_UID)" in here
    assert not [word for word in there if word.startswith("--owner")]

"""Alarms reach webhooks once, and what is secret of them reaches nobody."""

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.schema import Alarm
from bench.store import Store
from nights import SLOWED, SimulatedNights
from runner.nights import RETRIES, NightReport, look, parse_webhooks, send_alarms
from webhook_receiver import Receiver, receive


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr("runner.nights.RETRIES", RETRIES.new(backoff_factor=0))
    with receive() as running:
        yield running


def suspect_regression(nights: SimulatedNights) -> str:
    slower = {SLOWED.cell_id: 1.9}
    nights.put_night(0)
    nights.put_night(1)
    nights.put_night(2, factors=slower, environment={"cpu_quota_cores": 1.0})
    (suspicion,) = look(nights.store).pending
    assert suspicion.confirmation_run_id is not None
    return suspicion.confirmation_run_id


@pytest.fixture(scope="module")
def confirmed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, NightReport]:
    """A store with a confirmed regression, which no test changes, and what is said of it."""
    folder = tmp_path_factory.mktemp("confirmed")
    nights = SimulatedNights(store=Store.open(f"file://{folder}"))
    nights.put_confirmation(suspect_regression(nights), [SLOWED], factors={SLOWED.cell_id: 1.9})
    return folder, look(nights.store)


@pytest.fixture
def report(confirmed: tuple[Path, NightReport], tmp_path: Path) -> NightReport:
    """What is said of a confirmed regression, which `nights` has."""
    shutil.copytree(confirmed[0], tmp_path / "store")
    return copy.deepcopy(confirmed[1])


def test_a_regression_is_sent_once_to_each_webhook_and_not_while_it_waits(
    nights: SimulatedNights, receiver: Receiver
) -> None:
    found = parse_webhooks(["json:HOOK", "slack:HOOK"], {"HOOK": receiver.url})
    run_id = suspect_regression(nights)
    assert send_alarms(nights.store, look(nights.store), found) == []
    nights.put_confirmation(run_id, [SLOWED], factors={SLOWED.cell_id: 1.9})

    lines = send_alarms(nights.store, look(nights.store), found)
    again = send_alarms(nights.store, look(nights.store), found)

    assert len(lines) == 2
    assert again == []
    alarm = Alarm.model_validate_json(receiver.bodies[0])
    assert [change.cell_ids for change in alarm.regressions] == [(SLOWED.cell_id,)]
    assert alarm.regressions[0].changes[0].what == "cpu_quota_cores"
    text = json.loads(receiver.bodies[1])["text"]
    assert SLOWED.cell_id in text
    assert "cpu_quota_cores 2.0 → 1.0" in text
    assert len(receiver.bodies) == 2


def test_an_alarm_whose_mark_was_lost_is_sent_again_with_the_same_id(
    nights: SimulatedNights, report: NightReport, receiver: Receiver
) -> None:
    found = parse_webhooks(["json:HOOK"], {"HOOK": receiver.url})

    send_alarms(nights.store, report, found)
    send_alarms(nights.store, report, found)  # as a program does that was killed before it wrote the mark

    first, second = (Alarm.model_validate_json(body).alarm_id for body in receiver.bodies)
    assert first == second


@pytest.mark.parametrize(("statuses", "num_sent"), [([500, 503], 3), ([500, 500, 500], 3), ([404], 1), ([302], 1)])
def test_a_server_that_fails_is_tried_again_and_one_that_refuses_is_not(
    nights: SimulatedNights, report: NightReport, receiver: Receiver, statuses: list[int], num_sent: int
) -> None:
    is_taken = len(statuses) == 2
    receiver.statuses = list(statuses)

    (line,) = send_alarms(nights.store, report, parse_webhooks(["json:HOOK"], {"HOOK": receiver.url}))

    assert len(receiver.bodies) == num_sent
    assert line.startswith("sent to" if is_taken else f"not sent to json:HOOK: the server answered {statuses[-1]}")
    assert bool(look(nights.store).regressions[0].channels) == is_taken


def test_a_url_is_in_no_message_no_log_and_no_document(
    nights: SimulatedNights, report: NightReport, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    away = parse_webhooks(["slack:AWAY"], {"AWAY": "http://127.0.0.1:9/secret-path"})
    found = [*parse_webhooks(["json:HOOK"], {"HOOK": receiver.url}), *away]

    lines = send_alarms(nights.store, report, found)

    kept = b"".join(nights.store.get(key) for key in nights.store.list_keys("nights"))
    shown = " ".join([*lines, repr(found), kept.decode()])
    assert "not sent to slack:AWAY: the server cannot be reached" in shown
    assert caplog.text == ""
    assert "secret" not in shown
    assert "127.0.0.1" not in shown


@pytest.mark.parametrize("value", ["https://hooks.example/secret", "mail:HOOK", "json:", "json:HOOK", "slack:a b"])
def test_a_webhook_that_is_wrong_is_one_message_without_what_was_given(value: str) -> None:
    with pytest.raises(UserError) as error:
        parse_webhooks([value], {"HOOK": "no url, but secret"})
    assert "secret" not in str(error.value)

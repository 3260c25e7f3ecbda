"""Send alarms to webhooks. Their URLs are secrets: they come from the environment and appear in no message.

Every alarm is sent at least once: its mark is written to the store after the server has taken it. A program that is
killed in between sends it again, with the same `alarm_id`.
"""

import json
import logging
import os
import re
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import urllib3
from urllib3.exceptions import HTTPError, LocationParseError, MaxRetryError

from bench.errors import UserError
from bench.schema import Alarm, AlarmedChange, Notice, Shift, hash_text, read_time_of_day
from bench.store import Store, notice_key, report_key
from collector.changes import RecordedChange
from collector.files import replace_steering
from collector.nights.detection import MIN_NIGHTS_BEFORE
from collector.units import NOT_THERE
from runner.nights import NightReport

Kind = Literal["json", "slack"]
KINDS: tuple[Kind, ...] = ("json", "slack")
TIMEOUT_SECONDS = 10.0
"""Of silence."""
RETRIES = urllib3.Retry(
    total=2,
    backoff_factor=2.5,  # a server that restarts is back, and the night's report is not kept waiting
    status_forcelist=[429, *range(500, 600)],
    allowed_methods=None,
    raise_on_status=False,
    respect_retry_after_header=False,
)
RESEND_WITHIN = timedelta(days=7)
"""An older regression is not announced any more: a webhook that is new gets no news of last year."""
MAX_SHOWN = 10
"""Regressions that a message for people lists; it says how many more there are."""


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """Where alarms are sent: a variable of the environment that holds a URL, and the form of the body."""

    kind: Kind
    variable: str
    url: str

    def __repr__(self) -> str:
        return f"Webhook({self.kind}:{self.variable})"

    @property
    def channel(self) -> str:
        """The name under which the store keeps what was sent here; nothing of the URL is in it."""
        words = re.sub(r"[^a-z0-9]+", "-", self.variable.lower()).strip("-")
        return f"{self.kind}-{words}"[:54].rstrip("-")


class WebhookError(Exception):
    """A webhook that did not take an alarm; the message has nothing of its URL."""


def parse_webhooks(values: Sequence[str], environment: Mapping[str, str] = os.environ) -> list[Webhook]:
    """Return the webhooks that options name as `json:VARIABLE` or `slack:VARIABLE`. UserError if one is wrong.

    The option names a variable because other users of a machine can read the command lines of its processes.
    """
    found = []
    for value in values:
        kind, separator, variable = value.partition(":")
        if not separator or kind not in KINDS or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
            raise UserError(
                "--webhook: it takes json:VARIABLE or slack:VARIABLE, the name of an environment variable that holds "
                "the URL (the URL itself would be visible in the list of processes)"
            )
        url = environment.get(variable, "").strip()
        if fault := _find_fault(url):
            raise UserError(f"--webhook {value}: the variable {variable} holds no URL of a webhook: {fault}; set it")
        found.append(Webhook(kind="slack" if kind == "slack" else "json", variable=variable, url=url))
    return found


def _find_fault(url: str) -> str:
    """Return why nothing can be sent to a URL, without a part of it; empty where it can be tried."""
    if not re.fullmatch(r"[!-~]*", url):
        return "it has a space, a line break or a character that is not ASCII; write that as %XX"
    if not url.startswith(("http://", "https://")):
        return "it does not begin with http:// or https://"
    try:
        parts = urllib3.util.parse_url(url)
    except LocationParseError:  # its text may name the host
        return "its host or its port is none"
    if not parts.host:
        return "it names no host"
    return "it has a user or a password before the host, which would not be sent" if parts.auth else ""


def send_alarms(store: Store, report: NightReport, webhooks: Sequence[Webhook]) -> list[str]:
    """Send the regressions that were not sent yet to each webhook; return a line for each that was or was not.

    A change that is not decided is not sent: there is silence while a confirmation is pending.
    """
    lines = []
    for webhook in webhooks:
        unsent = [change for change in report.history.changes if _is_due(change, report, webhook)]
        for run_id in dict.fromkeys(change.suspicion.night_run_id for change in unsent):
            own = [change for change in unsent if change.suspicion.night_run_id == run_id]
            lines.append(_send_night(store, webhook, own))
    return lines


def make_alarm(store: Store, changes: Sequence[RecordedChange]) -> Alarm:
    """Return the alarm of regressions that one night confirmed."""
    first = changes[0].suspicion
    ids = sorted(change.suspicion.change_id for change in changes)
    return Alarm(
        alarm_id=hash_text(" ".join(ids)),
        matrix=first.matrix,
        night_run_id=first.night_run_id,
        report=f"{store.url}/{report_key(first.night_run_id)}",
        regressions=tuple(_describe(change) for change in changes),
    )


def format_text(alarm: Alarm) -> str:
    """Return the alarm for people, as Slack's markup: one line for each regression."""
    count = len(alarm.regressions)
    lines = [
        f"*{alarm.matrix}: {count} confirmed regression{'s' if count > 1 else ''}* in the night {alarm.night_run_id}"
    ]
    for change in alarm.regressions[:MAX_SHOWN]:
        name = change.cell_ids[0] if change.num_cells == 1 else f"{change.num_cells} cells on {change.hardware}"
        shift = f"{100 * (change.shift.ratio - 1):+.1f} %"
        lines.append(
            f"• {escape_slack(name)}: step time {shift}, first in {change.since_run_id}. {_list_changes(change)}"
        )
    if count > MAX_SHOWN:
        lines.append(f"and {count - MAX_SHOWN} more")
    return "\n".join([*lines, f"report: {escape_slack(alarm.report)}"])


def post(webhook: Webhook, body: bytes) -> None:
    """Send a body; raise WebhookError if the server does not take it in three tries."""
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # its warnings show the URL
    headers = {"Content-Type": "application/json", "User-Agent": "benchmatrix"}
    try:
        with _make_pool(webhook.url) as pool:
            answer = pool.request(
                "POST",
                webhook.url,
                body=body,
                headers=headers,
                timeout=TIMEOUT_SECONDS,
                retries=RETRIES,
                redirect=False,  # following one would send a GET, which tells nobody anything
            )
    except (HTTPError, OSError, ValueError) as error:  # their texts name the host
        reason = error.reason if isinstance(error, MaxRetryError) else error
        raise WebhookError(f"the server cannot be reached ({type(reason).__name__})") from None
    if not 200 <= answer.status < 300:
        raise WebhookError(f"the server answered {answer.status}")


def _make_pool(url: str) -> urllib3.PoolManager:
    parts = urllib3.util.parse_url(url)
    proxy = urllib.request.getproxies().get(parts.scheme or "")
    if not proxy or urllib.request.proxy_bypass(parts.host or ""):
        return urllib3.PoolManager()
    return urllib3.ProxyManager(proxy if "://" in proxy else f"http://{proxy}")


def _send_night(store: Store, webhook: Webhook, changes: Sequence[RecordedChange]) -> str:
    alarm = make_alarm(store, changes)
    body = alarm.to_json() if webhook.kind == "json" else json.dumps({"text": format_text(alarm)}).encode()
    try:
        post(webhook, body)
    except WebhookError as error:
        return f"not sent to {webhook.kind}:{webhook.variable}: {error}; the next `watch` tries again"
    for change in changes:
        suspicion = change.suspicion
        notice = Notice(
            matrix=suspicion.matrix,
            change_id=suspicion.change_id,
            channel=webhook.channel,
            sent_at=read_time_of_day(),
        )
        store.put(notice_key(suspicion.matrix, suspicion.change_id, webhook.channel), notice.to_json())
    return f"sent to {webhook.kind}:{webhook.variable}: {len(changes)} regressions of {alarm.night_run_id}"


def _is_due(change: RecordedChange, report: NightReport, webhook: Webhook) -> bool:
    is_recent = report.night.created_at - change.suspicion.seen_at <= RESEND_WITHIN
    return change.is_regression and is_recent and webhook.channel not in change.channels


def _describe(change: RecordedChange) -> AlarmedChange:
    suspicion, decision = change.suspicion, change.decision
    return AlarmedChange(
        change_id=suspicion.change_id,
        cell_ids=suspicion.cell_ids,
        num_cells=suspicion.num_cells,
        hardware=suspicion.hardware,
        since_run_id=suspicion.first_run_id,
        shift=suspicion.shift if decision is None or decision.shift is None else decision.shift,
        reason="" if decision is None else decision.reason,
        changes=suspicion.changes,
        confirmation_run_id=suspicion.confirmation_run_id,
    )


def _list_changes(change: AlarmedChange) -> str:
    if not change.changes:
        return "Nothing changed in what is recorded of the environment."
    parts = [f"{part.what} {part.before or NOT_THERE} → {part.after or NOT_THERE}" for part in change.changes]
    return escape_slack(f"Changed: {'; '.join(parts)}.")


def escape_slack(text: str) -> str:
    """Return the text with Slack's control characters escaped, less what steers a terminal.

    https://api.slack.com/reference/surfaces/formatting
    """
    return replace_steering(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def list_lines(report: NightReport) -> list[str]:
    """Return what is known of the newest night, a line for each change of it."""
    lines = [
        f"night {report.night.run_id}: {report.num_cells} cells, the newest of {report.num_nights} nights of "
        f"{report.matrix}"
    ]
    if report.num_uncounted:
        lines.append(
            f"{report.num_uncounted} of {report.num_cells + report.num_uncounted} planned cells are not looked at: "
            "none of their repeats counts (they have no result or failed, or their verdict says that they were "
            "disturbed)"
        )
    if report.num_too_new:
        which = "nothing" if report.num_too_new == report.num_cells else f"of {report.num_too_new} cells nothing"
        lines.append(
            f"{which} can be said yet: a change is seen against {MIN_NIGHTS_BEFORE} nights with repeats that count, at "
            "the least"
        )
    for change in report.changes:
        lines += list_change_lines(change)
    if not report.changes and report.num_too_new < report.num_cells:
        lines.append("no change is suspected")
    return [*lines, *(f"warning: {warning}" for warning in report.warnings)]


def list_change_lines(change: RecordedChange) -> list[str]:
    """Return one change for people: what, since when, what became of it, and what changed beside it."""
    suspicion, decision = change.suspicion, change.decision
    shift = decision.shift if decision is not None and decision.shift is not None else suspicion.shift
    name = suspicion.cell_ids[0] if suspicion.num_cells == 1 else f"all {suspicion.num_cells} on {suspicion.hardware}"
    lines = [f"{get_state(change):<9}  {format_shift(shift)}  {name}  since {suspicion.first_run_id}"]
    if decision is not None:
        lines.append(f"           {decision.reason}")
    lines += [f"           {part.what}: {part.before} -> {part.after}" for part in suspicion.changes]
    return lines


def format_shift(shift: Shift) -> str:
    """Return by how much a step time changed, with its interval, in per cent."""
    low, middle, high = (100 * (value - 1) for value in (shift.low, shift.ratio, shift.high))
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def get_state(change: RecordedChange) -> Literal["pending", "confirmed", "dismissed", "undecided"]:
    return "pending" if change.decision is None else change.decision.outcome

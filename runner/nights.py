"""Look at the newest night of a matrix, keep what is suspected and decided in the store, and send what is confirmed.

All state is in the store, under keys that follow from the night: killed at any moment, the same call goes on.
"""

import json
import logging
import os
import re
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import urllib3
import yaml
from urllib3.exceptions import HTTPError, MaxRetryError

from bench.errors import TransientError, UserError
from bench.registry.plugins import load_plugins
from bench.schema import (
    Alarm,
    AlarmedChange,
    Cell,
    Notice,
    PlannedCell,
    Run,
    Shift,
    Suspicion,
    hash_text,
    read_time_of_day,
)
from bench.store import Store, confirmation_run_id, decision_key, is_confirmation, notice_key, report_key, suspicion_key
from bench.store.documents import read_runs
from collector.changes import ChangeHistory, RecordedChange, name_changed, read_history
from collector.files import replace_steering, replace_text
from collector.nights.detection import MIN_NIGHTS_BEFORE, READ_COLUMNS, read_nights
from collector.nights.suspicions import Confirmation, NightRun, decide, suspect
from collector.results.frames import WITHOUT_RECORD
from collector.results.hosts import name_machines
from collector.results.load import join_results, load_run
from collector.units import NOT_THERE, count_things
from runner.matrix import shorten_name
from runner.runs import find_future_runs


@dataclass(frozen=True, kw_only=True)
class NightReport:
    """What is known of the newest night."""

    run: Run
    num_nights: int
    num_cells: int
    """Cells of the night with a repeat that counts."""
    num_uncounted: int
    """Planned cells of the night without one: nothing can be said of them."""
    num_too_new: int
    """Of `num_cells`, those with too few nights before: nothing can be said of them yet."""
    history: ChangeHistory
    warnings: tuple[str, ...] = ()

    @property
    def matrix(self) -> str:
        return self.run.matrix

    @property
    def night(self) -> str:
        return self.run.run_id

    @property
    def changes(self) -> list[RecordedChange]:
        return self.history.of_night(self.night)

    @property
    def pending(self) -> list[Suspicion]:
        return [change.suspicion for change in self.changes if change.state == "pending"]

    @property
    def regressions(self) -> list[RecordedChange]:
        return [change for change in self.changes if change.is_regression]


def look(store: Store, matrix: str | None = None, *, is_final: bool = False) -> NightReport:
    """Look at the newest night of a matrix (None: that of the newest run), record what is new, and return all.

    `is_final`: what is not measured again by now will not be.
    """
    nights, warnings = load_nights(store, matrix)
    newest, before = nights[-1], nights[:-1]
    history = read_history(store, newest.run.matrix)
    history = _decide_open(store, nights, history, is_final=is_final)
    if newest.confirmation is None:  # once it was measured again, nothing new is suspected in it
        for suspicion in suspect(nights, history):
            store.put(suspicion_key(suspicion.matrix, suspicion.change_id), suspicion.to_json())
            change = RecordedChange(suspicion=suspicion)
            history = replace(history, changes=(*history.changes, change))
            if suspicion.direction == "faster":
                history = _decide(store, change, nights, history, is_final=True)
    ids = {key.cell.cell_id for key in newest.cells}
    known = {
        key.cell.cell_id for key in newest.cells if sum(key in night.cells for night in before) >= MIN_NIGHTS_BEFORE
    }
    return NightReport(
        run=newest.run,
        num_nights=len(nights),
        num_cells=len(ids),
        num_uncounted=len({planned.cell.cell_id for planned in newest.run.cells} - ids),
        num_too_new=len(ids - known),
        history=history,
        warnings=(*warnings, *(f"{document.key}: {document.reason}" for document in history.skipped)),
    )


def _decide_open(store: Store, nights: Sequence[NightRun], history: ChangeHistory, *, is_final: bool) -> ChangeHistory:
    """Decide what waits, the oldest first: what is confirmed moves the level that later nights are compared with.

    What an older night left open stays undecided, unless its confirmation is there.
    """
    columns = {night.run.run_id: column for column, night in enumerate(nights)}
    for change in history.changes:
        column = columns.get(change.suspicion.night_run_id)
        if change.state == "pending" and column is not None:
            is_last = is_final or column < len(nights) - 1
            history = _decide(store, change, nights[: column + 1], history, is_final=is_last)
    return history


def _decide(
    store: Store, change: RecordedChange, nights: Sequence[NightRun], history: ChangeHistory, *, is_final: bool
) -> ChangeHistory:
    decision = decide(change.suspicion, nights, history, is_final=is_final)
    if decision is None:
        return history
    store.put(decision_key(decision.matrix, decision.change_id), decision.to_json())
    decided = replace(change, decision=decision)
    return replace(history, changes=tuple(decided if known is change else known for known in history.changes))


MAX_NIGHTS = 90
"""Nights that are looked at, the newest: three months say enough about noise, and a drift that takes longer than that
is one of less than 1 % a month."""


def load_nights(store: Store, matrix: str | None) -> tuple[tuple[NightRun, ...], list[str]]:
    """Return the newest MAX_NIGHTS runs of a matrix, the oldest first, and what of the store is not looked at.

    A run that is dated in the future would be the newest night until that day, and hide all that are measured before.
    `matrix`: None for that of the newest run. UserError if there is no run of it.
    """
    run_ids = set(store.list_run_ids())
    found, unreadable = read_runs(store, [run_id for run_id in sorted(run_ids) if not is_confirmation(run_id)])
    future = find_future_runs(found)
    left_out = {run_id: f"its run.json cannot be read ({reason})" for run_id, reason in unreadable.items()}
    left_out |= {
        run.run_id: future[run.run_id] for run in found if run.run_id in future and matrix in (None, run.matrix)
    }
    warnings = [f"run {run_id}: {reason}; it is not looked at" for run_id, reason in left_out.items()]
    runs = sorted((run for run in found if run.run_id not in future), key=lambda run: (run.created_at, run.run_id))
    known = sorted({run.matrix for run in runs})
    if not runs or matrix not in (None, *known):
        said = [f"no run{f' of {matrix}' if matrix else ''} here"]
        said += [f"it has runs of {', '.join(known)}"] if known else []
        said += [f"not looked at: {run_id}: {reason}" for run_id, reason in [*left_out.items()][:1]]
        advice = "name the right one with --store, or begin one with `benchmatrix run`"
        raise UserError(f"store {store.url}: {'; '.join(said)}; {advice}")
    matrix = matrix or runs[-1].matrix
    own = [run.run_id for run in runs if run.matrix == matrix][-MAX_NIGHTS:]
    frames, read = [], dict[str, Run]()
    for run_id in (each for one in own for each in (one, confirmation_run_id(matrix, one)) if each in run_ids):
        try:
            collection = load_run(store, run_id, writes_tables=True)
        except TransientError:
            raise
        except UserError as error:  # damaged since it was listed
            warnings.append(f"run {run_id}: {error}; it is not looked at")
            continue
        warnings += [f"run {run_id}: {notice}" for notice in collection.notices]
        if collection.skipped:
            warnings.append(f"run {run_id}: {len(collection.skipped)} documents did not count")
        frames.append(join_results([collection], READ_COLUMNS))
        read[run_id] = collection.run
    if read.keys().isdisjoint(own):
        raise UserError(f"store {store.url}: no run of {matrix} can be read: {'; '.join(warnings)}")
    results = name_machines(pd.concat(frames, ignore_index=True))
    cells = read_nights(read, results)
    nights = []
    for run_id in (run_id for run_id in own if run_id in read):
        again, confirmation = confirmation_run_id(matrix, run_id), None
        if again in read:
            rows = results[results["run_id"] == again]
            ended = rows["finished_at"].dropna()
            confirmation = Confirmation(
                run=read[again],
                cells=cells[again],
                ended_at=read[again].created_at if ended.empty else ended.max().to_pydatetime(),
                is_complete=not rows["status"].isin(WITHOUT_RECORD).any(),
            )
        nights.append(NightRun(run=read[run_id], cells=cells[run_id], confirmation=confirmation))
    return tuple(nights), warnings


def select_again(run: Run, suspicions: Iterable[Suspicion]) -> list[PlannedCell]:
    """Return the suspected cells of a night as they are measured again: with more repeats."""
    repeats: dict[str, int] = {}
    for suspicion in suspicions:
        for cell_id in suspicion.cell_ids:
            repeats[cell_id] = max(repeats.get(cell_id, 0), suspicion.confirmation_repeats)
    return [
        planned.model_copy(update={"repeats": repeats[planned.cell.cell_id]})
        for planned in run.cells
        if planned.cell.cell_id in repeats
    ]


def describe_matrix(run: Run, planned: list[PlannedCell]) -> dict[str, Any]:
    """Return the matrix of these cells as a matrix file has it.

    A matrix is axes and what is added to them. Every field of the first cell is an axis of one value, which makes this
    cell; every further cell is an entry of `include` of its own. Fields without a value are left out.
    """
    found = dict.fromkeys(one.cell.neighbour for one in planned if one.cell.neighbour is not None)
    names = {neighbour: f"neighbour-{number}" for number, neighbour in enumerate(found, start=1)}

    def list_fields(cell: Cell) -> dict[str, Any]:
        fields = cell.model_dump(mode="json", exclude={"schema_version"}, exclude_none=True)
        return fields if cell.neighbour is None else fields | {"neighbour": names[cell.neighbour]}

    return {
        "name": f"confirm-{shorten_name(run.matrix)}",
        "description": f"Measures again what was suspected in the run {run.run_id} of {run.matrix}.",
        "neighbours": {name: neighbour.model_dump(mode="json") for neighbour, name in names.items()},
        "axes": {name: [value] for name, value in list_fields(planned[0].cell).items()},
        "include": [
            {"repeats": one.repeats, "timeout_seconds": one.timeout_seconds, **list_fields(one.cell)} for one in planned
        ],
    }


def write_matrix(path: Path, run: Run, suspicions: Iterable[Suspicion]) -> None:
    text = yaml.safe_dump(describe_matrix(run, select_again(run, suspicions)), sort_keys=False)
    replace_text(path, f"# made by `benchmatrix watch`\n{text}")


# The URLs of webhooks are secrets: they come from the environment and appear in no message. Every alarm is sent at
# least once: its mark is written to the store after the server has taken it. A program that is killed in between sends
# it again, with the same `alarm_id`.
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
    """Says where alarms are sent, by a variable of the environment that holds a URL, and in which form."""

    kind: str
    """A name in FORMATS."""
    variable: str
    url: str

    def __repr__(self) -> str:
        return f"Webhook({self.kind}:{self.variable})"

    @property
    def channel(self) -> str:
        """The name under which the store keeps what was sent here; nothing of the URL is in it."""
        words = re.sub(r"[^a-z0-9]+", "-", self.variable.lower()).strip("-")
        return f"{self.kind}-{words}"[:54].rstrip("-")


def parse_webhooks(values: Sequence[str], environment: Mapping[str, str] = os.environ) -> list[Webhook]:
    """Return the webhooks that options name as `json:VARIABLE` or `slack:VARIABLE`. UserError if one is wrong.

    The option names a variable because other users of a machine can read the command lines of its processes.
    """
    found = []
    for value in values:
        kind, separator, variable = value.partition(":")
        if not separator or kind not in FORMATS or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
            raise UserError(
                f"--webhook: it takes {' or '.join(f'{name}:VARIABLE' for name in FORMATS)}, the name of an "
                "environment variable that holds the URL (the URL itself would be visible in the list of processes)"
            )
        url = environment.get(variable, "").strip()
        if not re.fullmatch(r"https?://[!-~]+", url):
            raise UserError(f"--webhook {value}: the variable {variable} holds no http:// or https:// URL; set it")
        found.append(Webhook(kind=kind, variable=variable, url=url))
    return found


def send_alarms(store: Store, report: NightReport, webhooks: Sequence[Webhook]) -> list[str]:
    """Send decided regressions that were not sent yet to each webhook; return a line for each that was or was not."""
    lines = []
    for webhook in webhooks:
        unsent = [change for change in report.history.changes if _is_due(change, report, webhook)]
        for run_id in dict.fromkeys(change.suspicion.night_run_id for change in unsent):
            own = [change for change in unsent if change.suspicion.night_run_id == run_id]
            lines.append(_send_night(store, webhook, own))
    return lines


def make_alarm(store: Store, changes: Sequence[RecordedChange]) -> Alarm:
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
        name = name_changed(change)
        of_steps = "step time " * (change.metric == "step-time")
        shift = f"{of_steps}{100 * (change.shift.ratio - 1):+.1f} %"
        lines.append(f"• {escape_slack(name)}: {shift}, first in {change.since_run_id}. {_list_changes(change)}")
    if count > MAX_SHOWN:
        lines.append(f"and {count - MAX_SHOWN} more")
    return "\n".join([*lines, f"report: {escape_slack(alarm.report)}"])


# The bodies of alarms; a plugin brings others.
FORMATS: dict[str, Callable[[Alarm], bytes]] = {
    "json": Alarm.to_json,
    "slack": lambda alarm: json.dumps({"text": format_text(alarm)}).encode(),
    **load_plugins("alarms"),
}


def post(webhook: Webhook, body: bytes) -> str:
    """Send a body; return why the server does not take it in three tries, without its URL, or an empty text."""
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
        return f"the server cannot be reached ({type(reason).__name__})"
    return "" if 200 <= answer.status < 300 else f"the server answered {answer.status}"


def _make_pool(url: str) -> urllib3.PoolManager:
    parts = urllib3.util.parse_url(url)
    proxy = urllib.request.getproxies().get(parts.scheme or "")
    if not proxy or urllib.request.proxy_bypass(parts.host or ""):
        return urllib3.PoolManager()
    return urllib3.ProxyManager(proxy if "://" in proxy else f"http://{proxy}")


def _send_night(store: Store, webhook: Webhook, changes: Sequence[RecordedChange]) -> str:
    alarm = make_alarm(store, changes)
    if problem := post(webhook, FORMATS[webhook.kind](alarm)):
        return f"not sent to {webhook.kind}:{webhook.variable}: {problem}; the next `watch` tries again"
    channel, matrix = webhook.channel, alarm.matrix
    for change_id in (change.suspicion.change_id for change in changes):
        notice = Notice(matrix=matrix, change_id=change_id, channel=channel, sent_at=read_time_of_day())
        store.put(notice_key(matrix, change_id, channel), notice.to_json())
    return (
        f"sent to {webhook.kind}:{webhook.variable}: {count_things(len(changes), 'regression')} of {alarm.night_run_id}"
    )


def _is_due(change: RecordedChange, report: NightReport, webhook: Webhook) -> bool:
    is_recent = report.run.created_at - change.suspicion.seen_at <= RESEND_WITHIN
    return change.is_regression and is_recent and webhook.channel not in change.channels


def _describe(change: RecordedChange) -> AlarmedChange:
    suspicion, decision = change.suspicion, change.decision
    return AlarmedChange(
        change_id=suspicion.change_id,
        cell_ids=suspicion.cell_ids,
        num_cells=suspicion.num_cells,
        metric=suspicion.metric,
        hardware=suspicion.hardware,
        since_run_id=suspicion.first_run_id,
        shift=change.shift,
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
    cells = count_things(report.num_cells, "cell")
    lines = [f"night {report.night}: {cells}, the newest of {report.num_nights} nights of {report.matrix}"]
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
    suspicion, decision = change.suspicion, change.decision
    lines = [
        f"{change.state:<9}  {format_shift(change.shift)}  {name_changed(suspicion)}  since {suspicion.first_run_id}"
    ]
    if decision is not None:
        lines.append(f"           {decision.reason}")
    lines += [f"           {part.what}: {part.before} -> {part.after}" for part in suspicion.changes]
    return lines


def format_shift(shift: Shift) -> str:
    """Return by how much a time changed, with its interval, in per cent."""
    low, middle, high = (100 * (value - 1) for value in (shift.low, shift.ratio, shift.high))
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"

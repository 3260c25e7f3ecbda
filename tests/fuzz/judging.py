"""What must hold of every command, whatever it was fed: judged from its exit code, its texts and the files it left."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.markers import SECRET, find_formulas, find_live_html, find_live_markdown, find_unprintable
from fuzz.zygote import Ending

EXIT_CODES = frozenset({0, 1, 2, 75, 130})
EXIT_PENDING = 3
"""Of `watch` alone: something has to be measured again."""
MAX_BYTES = 500 * 10**6
"""Resident, for an input that is refused or passed by."""
MAX_MESSAGE_LINES = 200
"""Of stderr. Foreign files are named, the first ten, then a number."""
MAX_READ_BYTES = 2**24
REFUSED = (2, 75)
NOTHING_COMPARED = b"Nothing could be compared: "
"""How `compare` begins the conclusion that it ends with exit code 2 for: an answer on stdout, as its 0 and 1 are."""
_ERROR = re.compile(r"^error: ", re.MULTILINE)
_WARNING = re.compile(r"^\S+\.py:\d+: \w*Warning: .*$", re.MULTILINE)
_FRAME = re.compile(r'File ".*?((?:bench|runner|collector)/[^"]*)", line \d+, in (\S+)')


@dataclass(frozen=True)
class Fault:
    """What did not hold. Two faults with the same signature most likely have one cause."""

    signature: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A command that has ended."""

    words: Sequence[str]
    ending: Ending
    stdout: bytes
    stderr: bytes
    before: Mapping[str, str]
    """The files of the folder before it began, see `take_inventory`."""
    folder: Path
    replaced: Sequence[str] = ()
    """The files that were there and that it was asked to replace."""


def take_inventory(folder: Path) -> dict[str, str]:
    """Return what each file of a folder holds: the hash of its content, or what kind of thing it is."""
    return {os.fsdecode(os.path.relpath(path, bytes(folder))): _hash(path) for path in _walk(bytes(folder))}


def _walk(folder: bytes) -> Iterator[bytes]:
    for parent, folders, files in os.walk(folder):
        yield from (os.path.join(parent, name) for name in files)
        yield from (os.path.join(parent, name) for name in folders if os.path.islink(os.path.join(parent, name)))


def _hash(path: bytes) -> str:
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_READ_BYTES:
        return f"{stat.S_IFMT(status.st_mode):o} {status.st_size}"
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def judge(outcome: Outcome) -> list[Fault]:
    """Return what did not hold, in the order of how grave it is."""
    faults = [*_judge_end(outcome)]
    if not faults:
        faults += _judge_messages(outcome)
    faults += _judge_texts(outcome)
    faults += _judge_files(outcome)
    return faults


def _judge_end(outcome: Outcome) -> Iterator[Fault]:
    ending, text = outcome.ending, outcome.stderr.decode(errors="replace")
    command = outcome.words[0] if outcome.words else ""
    if ending["limit"]:
        yield Fault(f"limit: {ending['limit']} {command}", f"ended for its {ending['limit']}: {ending}")
    elif ending["signal"] is not None:
        yield Fault(f"signal: {ending['signal']} {command}", f"ended by signal {ending['signal']}")
    elif "Traceback (most recent call last)" in text or "panicked at" in text:
        yield Fault(f"traceback: {_name_traceback(text)}", text)
    elif ending["code"] not in EXIT_CODES | ({EXIT_PENDING} if command == "watch" else set()):
        yield Fault(f"exit code: {ending['code']} {command}", f"exit code {ending['code']}: {text[-2000:]}")
    elif ending["peak_bytes"] > MAX_BYTES:
        yield Fault(f"memory: {command}", f"took {ending['peak_bytes'] / 1e6:.0f} MB")


def _name_traceback(text: str) -> str:
    """Return the last of our own functions in a traceback, and the type of its error."""
    frames = _FRAME.findall(text)
    last = text.strip().rpartition("\n")[2].partition(":")[0]
    return f"{last[:60]} in {'.'.join(frames[-1]) if frames else 'no module of the tool'}"


def _judge_messages(outcome: Outcome) -> Iterator[Fault]:
    text, code = outcome.stderr.decode(errors="replace"), outcome.ending["code"]
    command = outcome.words[0] if outcome.words else ""
    num_errors = len(_ERROR.findall(text))
    is_usage = "Usage: " in text
    is_answer = command == "compare" and code == 2 and NOTHING_COMPARED in outcome.stdout
    if code in REFUSED and num_errors != 1 - is_answer and not is_usage:
        yield Fault(
            f"messages: {num_errors} of {command}", f"{num_errors} messages with exit code {code}: {text[:2000]}"
        )
    if code == 0 and num_errors:
        yield Fault(f"messages: error with code 0 of {command}", text[:2000])
    if (num_lines := text.count("\n")) > MAX_MESSAGE_LINES:
        yield Fault(f"messages: too many of {command}", f"{num_lines} lines on stderr")
    if found := _WARNING.search(text):
        yield Fault(f"warning: {re.sub(r'^.*site-packages/', '', found[0])[:100]}", text[:2000])
    if code == 0 and "--json" in outcome.words and command != "render" and not _is_json(outcome.stdout):
        yield Fault(f"stdout: no JSON of {command}", outcome.stdout[:2000].decode(errors="replace"))


def _is_json(data: bytes) -> bool:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    try:
        json.loads(data, parse_constant=refuse)
    except ValueError:
        return False
    return True


def _judge_texts(outcome: Outcome) -> Iterator[Fault]:
    command = outcome.words[0] if outcome.words else ""
    for name, data in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        text = data.decode("utf-8", "replace")
        if SECRET in text:
            yield Fault(f"secret: {name} of {command}", text[:2000])
        if odd := [*find_unprintable(text)]:
            yield Fault(f"terminal: {name} of {command}", f"{', '.join(odd)} in {text[:2000]!r}")
    if "--markdown" in outcome.words and (live := find_live_markdown(outcome.stdout.decode(errors="replace"))):
        yield Fault(f"markdown: stdout of {command}", str(live))


def _judge_files(outcome: Outcome) -> Iterator[Fault]:
    command, after = outcome.words[0] if outcome.words else "", take_inventory(outcome.folder)
    is_refused = outcome.ending["code"] in REFUSED
    for name, content in outcome.before.items():
        if name not in after:
            if "--delete" not in outcome.words:
                yield Fault(f"file lost: {command}", name)
        elif after[name] != content and (is_refused or name not in outcome.replaced):
            yield Fault(f"file changed: {command}", f"{name} with exit code {outcome.ending['code']}")
    for name in after:
        if outcome.before.get(name) != after[name]:
            yield from _judge_output(command, name, outcome.folder / name)
        if name.endswith(".tmp") and name not in outcome.before:
            yield Fault(f"file left: {command}", name)


def _judge_output(command: str, name: str, path: Path) -> Iterator[Fault]:
    """Judge a file that the command wrote."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_READ_BYTES:
        return
    data = path.read_bytes()
    text = data.decode(errors="replace")
    if SECRET in text:
        yield Fault(f"secret: a file of {command}", name)
    checks = {".html": find_live_html, ".svg": find_live_html, ".md": find_live_markdown, ".csv": find_formulas}
    check = checks.get(path.suffix)
    if check is not None and (live := check(text)):
        yield Fault(f"marker: {path.suffix} of {command}", f"{name}: {live[:3]}")

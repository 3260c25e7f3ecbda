"""runner.output: output that cannot be written, and foreign texts on their way to a terminal."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from runner.output import GuardedStream, OutputClosedError, OutputError, make_console
from runner.terminal_text import escape_unprintable, format_message, hide_typed_credentials, replace_unprintable

ROOT = Path(__file__).parents[3]
FOREIGN = "a\x1b[31m\u202eb\x9b2Jc\x07"
PROGRAM = [sys.executable, "-c", "import runner.cli as c; c.main()"]
COMMANDS = [["--help"], ["--version"], ["version"], ["render", "smoke"], ["schema"], ["forecast", "--help"]]
# Whoever else prints could let a foreign text steer the terminal, or fail where the output is full.
MAY_PRINT = {
    ("runner/terminal_text.py", "print("),
    ("runner/output.py", "PrintableConsole("),
    ("runner/images/sbom.py", "print("),  # what another interpreter runs, whose output is read and not shown
}


@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_disk_is_one_message(words: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)

    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert lines == ["error: stdout cannot be written: No space left on device; give another place for it"]
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("words", COMMANDS)
def test_a_pipe_that_nobody_reads_ends_without_a_message(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([*PROGRAM, *words], stdout=writing, stderr=subprocess.PIPE, check=False, cwd=ROOT)
    finally:
        os.close(writing)

    assert (done.returncode, done.stderr) == (2, b"")


def test_an_error_that_cannot_be_told_keeps_its_exit_code() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, "render", "nope.yaml"], stdout=full, stderr=full, check=False, cwd=ROOT)

    assert done.returncode == 2


class Broken(io.StringIO):
    """A stream that fails as the system says."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        raise self._error

    def flush(self) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "kind"), [(BrokenPipeError(), OutputClosedError), (OSError(28, "full"), OutputError)]
)
def test_faults_of_a_stream_are_no_os_errors(error: OSError, kind: type[Exception]) -> None:
    stream = GuardedStream(Broken(error), "stdout")

    for fail in (lambda: stream.write("x"), stream.flush, lambda: stream.writelines(["x"])):
        with pytest.raises(kind):
            fail()


def test_a_stream_shows_marks_of_direction_as_escapes() -> None:
    file = io.StringIO()

    GuardedStream(file, "stdout").write("\x1b[31ma\u202eb\x1b[0m")

    assert file.getvalue() == "\x1b[31ma\\u202eb\x1b[0m"


def test_a_console_prints_foreign_texts_without_what_steers_a_terminal() -> None:
    file = io.StringIO()
    console = make_console(file)
    table = Table(FOREIGN)
    table.add_row(FOREIGN)

    console.print(FOREIGN, soft_wrap=True)
    console.print(table)

    printed = file.getvalue()
    assert printed.splitlines()[0] == "a [31m b 2Jc"  # rich leaves out the bell
    assert [letter for letter in printed if not letter.isprintable() and letter != "\n"] == []


def test_a_console_keeps_its_own_colours() -> None:
    file = io.StringIO()
    colourful = type(make_console())(file=file, force_terminal=True, color_system="standard", highlight=False)

    colourful.print(FOREIGN, style="red")

    assert file.getvalue() == "\x1b[31ma [31m b 2Jc\x1b[0m\n"


@pytest.mark.parametrize("text", [FOREIGN, "\U000e0001", "\udc80", "\u2028", "plain"])
def test_an_escaped_document_says_the_same(text: str) -> None:
    escaped = escape_unprintable(json.dumps({"name": text}, ensure_ascii=False))

    assert escaped.isprintable()
    assert json.loads(escaped) == {"name": text}


def test_a_message_is_printable_and_short() -> None:
    message = format_message(f"error: {FOREIGN}\nerror: forged {'x' * 5000}y")

    first, second = message.split("\n")
    assert first == f"error: {replace_unprintable(FOREIGN)}"
    assert second == f"  error: forged {'x' * 99}…{'x' * 99}y"


def test_nothing_is_printed_by_other_means() -> None:
    sink = re.compile(
        r"(?<![\w.])(?<!class )(?:print|\w*Console)\(|typer\.echo\(|sys\.std(?:out|err)\.write\(|print_exc\("
    )
    found = {
        (str(path.relative_to(ROOT)), match[0])
        for folder in ("runner", "collector", "benchmatrix")
        for path in (ROOT / folder).rglob("*.py")
        for match in sink.finditer(path.read_text())
    }

    assert found == MAY_PRINT


@pytest.mark.parametrize(
    "words", [["render", "\u202ea.yaml"], ["audit", "x" * 5000], ["access", "x" * 5000], ["wa\u202elk"]]
)
def test_a_hostile_name_is_one_harmless_message(words: list[str]) -> None:
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False, cwd=ROOT)

    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "\u202e" not in done.stderr
    assert max(map(len, done.stderr.split())) <= 200


def test_a_deleted_working_directory_is_no_fault(tmp_path: Path) -> None:
    program = (
        f"import os, runner.cli as c; os.mkdir({str(tmp_path / 'gone')!r}); os.chdir({str(tmp_path / 'gone')!r}); "
    )
    program += "os.rmdir(os.getcwd()); c.main()"

    for words, code in ((["render", "smoke"], 0), (["status"], 2)):
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, cwd=ROOT
        )
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Value error, 'AKIA:hunter2@bucket' is not one of", "Value error, '...@bucket' is not one of"),
        ("extra argument (AKIA:se/cr@et@bucket/p)", "extra argument (...@bucket/p)"),
        ("No such option: --st=s3:/AKIA:secret@b", "No such option: --st=s3:/...@b"),
        ("image 'AKIA:hunter2@bucket': unknown", "image '...@bucket': unknown"),
        ("image 'host:5000/team/x:y@sha256:0f': unknown", "image 'host:5000/team/x:y@sha256:0f': unknown"),
        ("see https://host:443/a, or a@b; 'x: y' and 'z@w'", "see https://host:443/a, or a@b; 'x: y' and 'z@w'"),
    ],
)
def test_no_error_shows_a_password_of_what_was_typed(text: str, shown: str) -> None:
    assert hide_typed_credentials(text) == shown
    assert format_message(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("has no run 's3://AKIA:se/cr@et@bucket/p'", "has no run 's3://...@bucket/p'"),
        ("https://token@host/x and s3://a:b@c", "https://...@host/x and s3://...@c"),
        ("image 's3://bucket/x?token=secret#y': unknown", "image 's3://bucket/x?...': unknown"),
        ("https://host:443/a see github.com/a/b@main", "https://host:443/a see github.com/a/b@main"),
        ("https://host/a@b", "https://host/a@b"),
        ("file:/user:se/cret@host/x: there is no such file", "file:/...@host/x: there is no such file"),
    ],
)
def test_a_message_shows_no_user_and_no_password_of_a_url(text: str, shown: str) -> None:
    assert format_message(text) == shown
    file = io.StringIO()
    GuardedStream(file, "stderr", takes_messages=True).write(text)
    assert file.getvalue() == shown


def test_a_document_stays_as_it_is() -> None:
    file = io.StringIO()
    GuardedStream(file, "stdout").write("s3://a:b@c")
    assert file.getvalue() == "s3://a:b@c"

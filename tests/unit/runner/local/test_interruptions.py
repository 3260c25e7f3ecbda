"""Runs killed, interrupted, refused, or stopped by their store, and the command that resumes them: real processes."""

import os
import random
import re
import shlex
import signal
import subprocess
import time

import pytest

from bench.schema import Run
from bench.store import run_key
from factories import present
from fake_interpreters import read_log, read_pids
from local_processes import await_death
from waiting import wait_for
from workspace import HANG_GUARD_SECONDS, MATRIX, Workspace, name_repeats, open_terminal


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_again_and_again_measures_every_repeat_once(number: int, workspace: Workspace) -> None:
    (workspace.folder / "quick.yaml").write_text(MATRIX.replace("repeats: 2", "repeats: 10"))
    # However late the signals come, the run does not end before the last one.
    workspace.make_python(before='until test "$BENCH_REPEAT" -lt 10 || test -e go; do touch held; sleep 0.05; done')
    moments = random.Random(number)
    started_though_there: set[tuple[str, int]] = set()
    for num_more in (0, 1, 2, 3, None):
        there, num_started = set(name_repeats(workspace.read_results())), len(read_log(workspace.log))
        runner = workspace.start()
        if num_more is None:
            (workspace.folder / "go").touch()
        else:
            await_line(runner, "run quick-")  # before it, Python can lose a Ctrl-C: it is still importing
            await_starts(workspace, num_started + num_more)
            time.sleep(moments.uniform(0.0, 0.2))
            os.killpg(runner.pid, number)
        output = runner.communicate(timeout=HANG_GUARD_SECONDS)[0]
        if number != signal.SIGKILL:
            await_death(read_pids(workspace.log))
        started_though_there |= there & set(read_log(workspace.log)[num_started:])

    assert runner.returncode == 0, output
    assert set() == started_though_there
    results = workspace.read_results()
    (run_id,) = workspace.list_run_ids()
    run = Run.model_validate_json((workspace.folder / "results" / run_key(run_id)).read_bytes())
    planned = [(cell.cell.cell_id, repeat) for cell in run.cells for repeat in range(1, cell.repeats + 1)]
    assert sorted(planned) == name_repeats(results)
    assert {result.status for result in results} == {"ok"}  # the interpreter fails where another one runs


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_says_which_command_goes_on_and_that_one_does(number: int, workspace: Workspace) -> None:
    workspace.make_hanging_python()
    inherited = signal.signal(number, signal.SIG_DFL)  # under `nohup`, the tests ignore SIGHUP, and so would the runner
    runner = workspace.start()
    signal.signal(number, inherited)
    hanging = [int(word) for word in workspace.await_file("hanging").split()]
    finished = name_repeats(workspace.read_results())
    assert len(finished) == 2

    os.killpg(runner.pid, number)  # as a terminal does; the measuring process has a group of its own
    output = runner.communicate(timeout=HANG_GUARD_SECONDS)[0]

    assert runner.returncode == 128 + number, output
    await_death(hanging)
    assert name_repeats(workspace.read_results()) == finished
    resume_command = present(re.search(r"interrupted; what is finished is kept\. To resume:\n  (.+)\n$", output))
    (workspace.folder / "go").touch()
    second = workspace.call(*shlex.split(resume_command[1]))
    assert second.returncode == 0, second.stderr
    assert len(workspace.read_results()) == 4
    assert sorted(read_log(workspace.log)) == name_repeats(workspace.read_results())


def test_ctrl_c_in_a_terminal_ends_the_run_and_tidies_the_screen(workspace: Workspace) -> None:
    workspace.make_hanging_python()

    with open_terminal(workspace, workspace.command) as terminal:
        workspace.await_file("hanging")
        terminal.read_until("measuring conv6-.*, repeat 2/2, ")
        os.write(terminal.master, b"\x03")
        terminal.read_until("interrupted; what is finished is kept.*\r\n.*--run-id quick-")

    assert terminal.process.returncode == 130
    assert "\x1b[?25h" in terminal.text  # the cursor is shown again


def await_starts(workspace: Workspace, number: int) -> None:
    """Return when so many measurements have begun since the workspace was set up, or the next one is held."""
    held = workspace.folder / "held"
    wait_for(lambda: len(read_log(workspace.log)) >= number or held.exists(), "a measurement", 0.002)


def await_line(process: "subprocess.Popen[str]", word: str) -> None:
    """Return when the process has printed a line with `word`."""
    assert any(word in line for line in present(process.stdout))

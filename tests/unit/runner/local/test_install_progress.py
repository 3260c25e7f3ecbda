"""What people see of an installation, in a terminal and in a log, while pip says nothing for minutes."""

import io
import re

import pytest
from rich.console import Console

from runner.local.virtual_environments import InstallProgress, PipOutput
from store_calls import wait_until

FIRST = "Collecting numpy==2.0 (from -r requirements.txt (line 1))"
SECOND = "Downloading numpy-2.0-cp311-cp311-manylinux_2_28_x86_64.whl (400.0 MB)"
THIRD = "Downloading torch-2.14.1-cp311-none-any.whl (888.1 MB)"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ((), ""),
        ((FIRST,), ""),
        ((SECOND,), "loading numpy-2.0 (400.0 MB), after 0 packages"),
        ((SECOND, THIRD), "loading torch-2.14.1 (888.1 MB), after 1 package (0.4 GB)"),
        (
            ("Using cached six-1.0-py3-none-any.whl.metadata (3 kB)", "Using cached six-1.0-py3-none-any.whl (11 kB)"),
            "loading six-1.0 (11 kB), after 0 packages",
        ),
        (
            (SECOND, "Processing /opt/wheels/gast-0.7.0-py3-none-any.whl (from -r x (line 2))"),
            "loading gast-0.7.0, after 1 package (0.4 GB)",
        ),
        ((SECOND, THIRD, "Installing collected packages: numpy, torch"), "unpacking 2 packages (1.3 GB)"),
    ],
)
def test_what_pip_has_done_is_counted_from_its_lines(lines: tuple[str, ...], text: str) -> None:
    pip = PipOutput()
    for line in lines:
        pip.read(line)
    assert pip.describe() == text


def test_a_log_gets_a_line_at_intervals_though_pip_is_silent() -> None:
    file = io.StringIO()
    with InstallProgress(Console(file=file, width=20), sign_seconds=0.01) as progress:
        progress.report("pytorch-cpu: new environment")
        progress.report(f"pytorch-cpu: {SECOND}")
        progress.report(f"pytorch-cpu: {THIRD}")
        wait_until(lambda: file.getvalue().count("after 1 package") > 1)
        progress.report("pytorch-cpu: installed in 80 s")
        progress.report("tensorflow-cpu: waiting for another installation")
        wait_until(lambda: "tensorflow-cpu: waiting for another installation, " in file.getvalue())
    lines = file.getvalue().splitlines()
    assert lines[0] == "installing pytorch-cpu: new environment"
    assert "pytorch-cpu: installed in 80 s" in lines
    assert "installing tensorflow-cpu: waiting for another installation" in lines
    signs = [line for line in lines if line.endswith(" s") and "loading torch" in line]
    assert re.fullmatch(
        r"installing pytorch-cpu: loading torch-2.14.1 \(888.1 MB\), after 1 package \(0.4 GB\), \d+ s", signs[0]
    )

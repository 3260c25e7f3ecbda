"""runner.cli: what the start of every command loads."""

import subprocess
import sys

# Each takes a tenth of a second or more, and only some commands need it.
LEFT_TO_COMMANDS = {
    *("altair", "boto3", "jsonschema", "kubernetes", "kubernetes_validate", "numpy", "pandas", "pyarrow", "scipy"),
    *("statsmodels", "vl_convert"),
}


def test_no_command_waits_for_packages_that_only_others_need() -> None:
    program = "import sys, runner.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "runner.commands.run" in done.stdout.split()
    assert sorted(LEFT_TO_COMMANDS.intersection(done.stdout.split())) == []

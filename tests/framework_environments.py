"""Installs the environments of all frameworks for the tests that start their interpreters.

`make test` runs it as a program while it still installs what the tests themselves need: both wait for the network.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from bench.errors import UserError
from bench.registry import FRAMEWORKS
from bench.schema import Framework
from runner.local.virtual_environments import prepare_virtual_environments


def install_environments(report: Callable[[str], None]) -> dict[Framework, Path]:
    """Return a Python interpreter for each framework, with the packages of its CPU image; install what is missing.

    `report` gets each line that an installation prints. UserError where one fails.
    """
    # All 16,568 modules take 152 s of CPU; the processes compile the 4,200 that they import, once, in 14 s.
    variables = {} if sys.dont_write_bytecode else {"UV_COMPILE_BYTECODE": "0"}
    with patch.dict(os.environ, variables):
        return prepare_virtual_environments(tuple(FRAMEWORKS), "cpu", report)


if __name__ == "__main__":
    try:
        install_environments(print)
    except UserError as error:
        sys.exit(f"error: {error}")

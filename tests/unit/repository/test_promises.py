"""Every promise of the list has a test of that name."""

import re
from pathlib import Path

from cluster.promises import PROMISES

TESTS = Path(__file__).parents[2]


def test_each_promise_names_a_test_that_exists() -> None:
    missing = []
    for one in PROMISES:
        file, _, function = one.test.partition("::")
        path = TESTS / file
        if not path.exists() or not re.search(rf"^def {function}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            missing.append(one.test)
    assert missing == []

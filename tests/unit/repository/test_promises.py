"""Every promise of the list has a test of that name."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]


def test_each_promise_names_a_test_that_exists() -> None:
    _, *promises = (TESTS / "cluster" / "promises.txt").read_text(encoding="utf-8").splitlines()
    missing = []
    for line in promises:
        _, _, test = line.split(" | ")
        file, _, function = test.partition("::")
        path = TESTS / file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        missing += [] if re.search(rf"^def {function}\(", text, re.MULTILINE) else [test]
    assert missing == []

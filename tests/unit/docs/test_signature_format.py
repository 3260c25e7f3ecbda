"""The few lines of decision 0058 by which anybody can check a signature without this tool."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature

from bench.store import result_key, run_key
from factories import RUN_ID, make_result, make_run
from signing import make_key, put_signed

PAGE = Path(__file__).parents[3] / "docs" / "decisions" / "0058-signatures.md"
RESULT = make_result()
KEY = result_key(RUN_ID, RESULT.cell_id, 1, "a1")


@pytest.fixture(scope="module")
def check() -> Callable[..., bytes]:
    """The function that the page shows."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(blocks[0], names)
    found: Callable[..., bytes] = names["check"]
    return found


def test_what_the_tool_signed_is_right_by_the_page_and_what_was_changed_is_not(
    tmp_path: Path, check: Callable[..., bytes]
) -> None:
    put_signed(tmp_path, make_run(), [RESULT])
    public, digest = make_key().public.to_pem(), hashlib.sha256(make_run().to_json()).hexdigest()
    plan, result = ((tmp_path / key).read_bytes() for key in (run_key(RUN_ID), KEY))
    assert check(plan, run_key(RUN_ID), None, public) == make_run().to_json()
    assert check(result, KEY, digest, public) == RESULT.to_json()
    for wrong in (
        (result.replace(b"0.1", b"0.2"), KEY, digest, public),
        (result, KEY.replace("1-a1", "2-a1"), digest, public),
        (result, KEY, "0" * 64, public),
        (result, KEY, digest, make_key("other").public.to_pem()),
    ):
        with pytest.raises(InvalidSignature):
            check(*wrong)

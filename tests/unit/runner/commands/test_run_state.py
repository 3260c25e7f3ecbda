"""What is said of repeats without a result: a run that goes on has some to go, one that has ended misses them."""

import socket
from pathlib import Path

import pytest

from bench.store import Store
from factories import make_result, make_run, put_documents
from runner.local.process import hold_host_lock
from workspace import CallMain, Workspace


@pytest.mark.parametrize(
    ("holder", "fields", "words"),
    [
        ("mine", {}, "2 to go, running"),
        ("another", {}, "2 missing"),
        (None, {}, "2 missing"),
        (None, {"hostname": "another"}, "2 not there yet"),
        (None, {"executor": "kubernetes"}, "2 not there yet"),
    ],
)
def test_missing_repeats_are_to_go_as_long_as_their_run_goes_on(
    holder: str | None, fields: dict[str, str], words: str, call_main: CallMain, workspace: Workspace
) -> None:
    place = {"hostname": socket.gethostname()} | fields
    run = make_run(repeats=3, run_id="mine").model_copy(update=place)
    put_documents(Store.open(Path(workspace.folder, "results").as_uri()), run, [make_result(run_id="mine")])
    if holder is None:
        out = call_main("status")[1]
    else:
        with hold_host_lock(holder):
            out = call_main("status")[1]
    assert out == f"mine: 3 repeats: 1 ok, {words}\n"

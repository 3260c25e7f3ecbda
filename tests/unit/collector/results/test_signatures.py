"""Runs of which only what was signed counts: what is wrong is named and counted, and no table stands in for it."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from bench.errors import UserError
from bench.schema import Node
from bench.signatures.text import split_signature
from bench.store import Store, listing, node_fault_key, placement_key, raw_removal_key, result_key, run_key
from collector.facts import describe_signatures, list_facts
from collector.results.collection import Collection, SignatureCheck
from collector.results.dataset import tables
from collector.results.load import load_run
from factories import RUN_ID, make_placement, make_result, make_run, make_validity
from node_faults import make_node_fault
from raw_removals import make_raw_removal
from runner.reporting.stored_runs import print_skipped
from signing import make_key, open_verifying, put_signed

RUN = make_run(repeats=4, executor="kubernetes")
# Without a roofline, whose rates would contradict the step times that a test writes into a result.
UNCHECKED = make_validity().model_copy(update={"unchecked": ("peak of the device not known",)})
RESULTS = [
    make_result(repeat=number, step_seconds=(0.1 * number,) * 3, roofline=None, validity=UNCHECKED)
    for number in (1, 2, 3, 4)
]
KEYS = [result_key(RUN_ID, found.cell_id, found.repeat, found.attempt) for found in RESULTS]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a signed run of four results."""
    put_signed(tmp_path / "store", RUN, RESULTS)
    return tmp_path / "store"


def load(folder: Path, *names: str) -> Collection:
    return load_run(open_verifying(folder, *names), RUN_ID)


def read_statuses(collection: Collection) -> list[str]:
    return [str(status) for status in collection.results["status"]]


def test_a_run_that_is_signed_as_a_whole_counts_as_a_whole(folder: Path) -> None:
    collection = load(folder)
    assert read_statuses(collection) == ["ok"] * 4
    assert collection.signatures == SignatureCheck(num_right=4, problems={})
    assert describe_signatures(collection) == "right of the plan and of 4 results"
    assert len(collection.samples) == 4 * 5  # two steps of warm-up and three timed ones each


def test_each_problem_is_named_and_counted_and_its_result_is_missing(folder: Path) -> None:
    stripped, _ = split_signature((folder / KEYS[0]).read_bytes())
    (folder / KEYS[0]).write_bytes(stripped)
    (folder / KEYS[1]).write_bytes((folder / KEYS[1]).read_bytes().replace(b"0.2", b"0.1", 1))
    put_signed(folder, RUN, [RESULTS[2]], "other")
    (folder / run_key(RUN_ID)).write_bytes(put_signed(folder, RUN, []).seal(run_key(RUN_ID), RUN.to_json()))
    collection = load(folder)
    assert read_statuses(collection) == ["missing", "missing", "missing", "ok"]
    other = make_key("other").public.key_id
    assert {skipped.key: skipped.reason for skipped in collection.skipped} == {
        KEYS[0]: "not signed",
        KEYS[1]: "wrong signature: changed, moved here, or of another run of this name",
        KEYS[2]: f"signed by the key {other}, which is none of those given by --verify",
    }
    assert describe_signatures(collection) == (
        "right of the plan and of 1 result; 3 documents left out: "
        "1 not signed, 1 wrong signature, 1 signed by an unknown key"
    )


def test_results_of_before_and_after_a_change_of_keys_count_where_both_are_trusted(folder: Path) -> None:
    put_signed(folder, RUN, [RESULTS[3]], "new")
    (folder / run_key(RUN_ID)).write_bytes(put_signed(folder, RUN, []).seal(run_key(RUN_ID), RUN.to_json()))
    assert read_statuses(load(folder)) == ["ok", "ok", "ok", "missing"]
    assert read_statuses(load(folder, "own", "new")) == ["ok"] * 4


def test_a_plan_that_is_not_signed_is_an_error(folder: Path) -> None:
    (folder / run_key(RUN_ID)).write_bytes(RUN.to_json())
    with pytest.raises(UserError, match=f"{run_key(RUN_ID)}: not signed"):
        load(folder)
    assert read_statuses(load_run(Store.open(f"file://{folder}"), RUN_ID)) == ["ok"] * 4


def test_a_plan_without_a_cell_cannot_take_the_place_of_the_signed_one(folder: Path) -> None:
    put_signed(folder, make_run(repeats=1, executor="kubernetes"), [])
    collection = load(folder)
    assert read_statuses(collection) == ["missing"]
    assert collection.signatures == SignatureCheck(num_right=0, problems={"wrong signature": 4})


def test_tables_are_not_believed_whatever_versions_their_rows_claim(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MIN_NEW_DOCUMENTS", 1)
    # As on a file system that has no time of change of its own.
    monkeypatch.setattr(listing, "describe_version", lambda status: f"{status.st_mtime_ns}-{status.st_size}")
    plain, path = Store.open(f"file://{folder}"), folder / KEYS[3]
    right, status = path.read_bytes(), path.stat()
    path.write_bytes(right.replace(b"0.4", b"0.3"))
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    load_run(plain, RUN_ID, writes_tables=True)
    path.write_bytes(right)
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    before = sorted(folder.rglob("*.parquet"))

    believed, checked = load_run(plain, RUN_ID), load(folder)

    medians = [found.results["median_step_seconds"].to_list()[3] for found in (believed, checked)]
    assert medians == [pytest.approx(0.3), pytest.approx(0.4)]
    assert checked.samples["seconds"].max() == pytest.approx(0.4)
    assert sorted(folder.rglob("*.parquet")) == before


def test_rows_of_results_that_were_removed_are_not_believed(folder: Path) -> None:
    plain = Store.open(f"file://{folder}")
    load_run(plain, RUN_ID, writes_tables=True)
    version = next(found.version for found in plain.list_objects("runs") if found.key == KEYS[0])
    removal = make_raw_removal([RESULTS[0]], versions={KEYS[0]: version})
    plain.put(raw_removal_key(RUN_ID, "r1"), removal.to_json())
    plain.delete(KEYS[0])
    assert read_statuses(load_run(plain, RUN_ID)) == ["ok"] * 4
    assert read_statuses(load(folder)) == ["missing", "ok", "ok", "ok"]


def test_placements_and_node_faults_count_only_if_they_are_signed(folder: Path) -> None:
    placement, fault = make_placement(RESULTS[0], Node(instance_type="n1")), make_node_fault(RUN, repeat=2)
    documents: dict[str, bytes] = {
        placement_key(RUN_ID, RESULTS[0].cell_id, 1, "a1"): placement.to_json(),
        node_fault_key(RUN_ID, fault.cell_id, fault.repeat, fault.attempt): fault.to_json(),
    }
    for key, data in documents.items():
        Store.open(f"file://{folder}").put(key, data)
    unsigned = load(folder)
    assert unsigned.results["instance_type"].isna().all()
    assert unsigned.node_faults == ()
    assert unsigned.signatures == SignatureCheck(num_right=4, problems={"not signed": 2})
    signing = put_signed(folder, RUN, [])
    for key, data in documents.items():
        signing.put(key, data)
    signed = load(folder)
    assert signed.results["instance_type"].to_list()[0] == "n1"
    assert signed.node_faults == (fault,)


def test_what_was_not_checked_is_said(folder: Path) -> None:
    collection = load_run(Store.open(f"file://{folder}"), RUN_ID)
    assert collection.signatures is None
    assert describe_signatures(collection).startswith("not checked: whoever may write to the store can have invented")
    assert "signatures" not in dict(list_facts(collection))
    assert dict(list_facts(load(folder)))["signatures"] == "right of the plan and of 4 results"


@pytest.mark.parametrize("read", [load, lambda folder: load_run(Store.open(f"file://{folder}"), RUN_ID)])
def test_the_terminal_says_what_was_found_where_it_was_checked(
    folder: Path, read: Callable[[Path], Collection]
) -> None:
    file = io.StringIO()
    collection = read(folder)
    print_skipped(collection, Console(file=file, width=200))
    expected = "" if collection.signatures is None else "signatures: right of the plan and of 4 results\n"
    assert file.getvalue() == expected

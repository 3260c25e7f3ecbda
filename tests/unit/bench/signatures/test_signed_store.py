"""bench.signatures.signed_store: whoever may write to a store can lose documents, and change none unseen."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.schema import read_result, read_run
from bench.signatures.signed_store import SignatureProblem, SignedStore, UnverifiedObject
from bench.signatures.text import append_signature, encode_message, split_signature
from bench.store import KeyMissing, Store, UnreadableObject, is_signed_key, result_key, run_key
from bench.store import keys as store_keys
from factories import RUN_ID, make_cell, make_result, make_run
from signing import make_key, open_signing, open_verifying, put_signed

RUN = make_run(repeats=2)
FIRST, SECOND = make_result(), make_result(repeat=2)
PLAN_KEY = run_key(RUN_ID)
FIRST_KEY, SECOND_KEY = (result_key(RUN_ID, found.cell_id, found.repeat, found.attempt) for found in (FIRST, SECOND))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a signed run of two results."""
    put_signed(tmp_path, RUN, [FIRST, SECOND])
    return tmp_path


def find_problem(folder: Path, key: str = FIRST_KEY, *names: str) -> SignatureProblem | None:
    """Return what is wrong with the signature of an object, read alone and among others; None: it is right."""
    alone: SignatureProblem | None = None
    try:
        open_verifying(folder, *names).get(key)
    except UnverifiedObject as error:
        alone = error.problem
    ((_, found),) = open_verifying(folder, *names).try_many([key])
    assert (found.problem if isinstance(found, UnverifiedObject) else None) == alone
    return alone


def test_signed_documents_are_read_where_their_key_is_trusted(folder: Path) -> None:
    store = open_verifying(folder)
    assert store.get(FIRST_KEY) == FIRST.to_json()
    assert dict(store.get_listed([FIRST_KEY, SECOND_KEY])) == {
        FIRST_KEY: FIRST.to_json(),
        SECOND_KEY: SECOND.to_json(),
    }
    assert find_problem(folder, FIRST_KEY, "other", "own") is None


def test_signed_documents_are_read_as_before_where_signatures_are_not_checked(folder: Path) -> None:
    plain = Store.open(f"file://{folder}")
    result = read_result(plain.get(FIRST_KEY))
    assert result.signature is not None
    assert result.model_copy(update={"signature": None}) == FIRST
    assert result.to_json() == FIRST.to_json()  # a copy that is written elsewhere has no wrong signature
    assert read_run(plain.get(PLAN_KEY)).to_json() == RUN.to_json()
    assert json.loads(plain.get(FIRST_KEY)).keys() - {"signature"} == json.loads(FIRST.to_json()).keys()


def change_bit(data: bytes) -> bytes:
    place = data.index(b'"run_id": "') + len(b'"run_id": "')
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def write_keys_twice(data: bytes) -> bytes:
    return data.replace(b'{\n "schema_version": 2', b'{\n "schema_version": 1,\n "schema_version": 2', 1)


TAMPERING: dict[str, tuple[Callable[[bytes], bytes], SignatureProblem]] = {
    "a-bit": (change_bit, SignatureProblem.WRONG),
    "another-form": (lambda data: json.dumps(json.loads(data), indent=2).encode(), SignatureProblem.WRONG),
    "compact": (lambda data: json.dumps(json.loads(data)).encode(), SignatureProblem.WRONG),
    "another-order": (lambda data: json.dumps(json.loads(data), indent=1, sort_keys=True).encode(),
                      SignatureProblem.WRONG),
    "a-key-twice": (write_keys_twice, SignatureProblem.WRONG),
    "stripped": (lambda data: split_signature(data)[0], SignatureProblem.MISSING),
    "cut": (lambda data: data[: len(data) // 2], SignatureProblem.MISSING),
    "cut-in-the-signature": (lambda data: data[:-20], SignatureProblem.WRONG),
    "empty": (lambda data: b"", SignatureProblem.MISSING),
    "more-behind": (lambda data: data + b" ", SignatureProblem.WRONG),
    "signed-again-by-another": (
        lambda data: append_signature(
            split_signature(data)[0], make_key("other").sign(encode_message(FIRST_KEY, None, split_signature(data)[0]))
        ),
        SignatureProblem.UNKNOWN_KEY,
    ),
    "under-a-trusted-name": (
        lambda data: data.replace(make_key().public.key_id.encode(), make_key("third").public.key_id.encode()),
        SignatureProblem.WRONG,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("tamper", "problem"), TAMPERING.values(), ids=TAMPERING)
@pytest.mark.parametrize("key", [FIRST_KEY, PLAN_KEY], ids=["result", "plan"])
def test_a_document_that_was_changed_is_refused_by_name(
    folder: Path, tamper: Callable[[bytes], bytes], problem: SignatureProblem, key: str
) -> None:
    path = folder / key
    changed = tamper(path.read_bytes())
    assert changed != path.read_bytes()
    path.write_bytes(changed)
    assert find_problem(folder, key, "own", "third") == problem


def test_records_that_change_places_are_refused(folder: Path) -> None:
    first, second = folder / FIRST_KEY, folder / SECOND_KEY
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    assert find_problem(folder, FIRST_KEY) == find_problem(folder, SECOND_KEY) == SignatureProblem.WRONG


def test_a_record_under_another_key_is_refused(folder: Path) -> None:
    key = result_key(RUN_ID, FIRST.cell_id, 1, "a2")
    (folder / key).write_bytes((folder / FIRST_KEY).read_bytes())
    assert find_problem(folder, key) == SignatureProblem.WRONG


def test_a_result_is_none_among_the_interrupted_ones_and_the_other_way_round(folder: Path) -> None:
    key = FIRST_KEY.replace("/results/", "/interrupted/")
    (folder / key).parent.mkdir(parents=True)
    (folder / key).write_bytes((folder / FIRST_KEY).read_bytes())
    assert find_problem(folder, key) == SignatureProblem.WRONG


def test_a_record_of_another_run_of_the_same_name_is_refused(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    put_signed(other, make_run(repeats=2, user="grace"), [make_result(step_seconds=(0.01, 0.01, 0.01))])
    (folder / FIRST_KEY).write_bytes((other / FIRST_KEY).read_bytes())
    assert find_problem(folder) == SignatureProblem.WRONG


def test_with_the_plan_of_another_run_of_the_same_name_no_record_fits(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    put_signed(other, make_run([make_cell(batch_size=1)], repeats=2), [])
    (folder / PLAN_KEY).write_bytes((other / PLAN_KEY).read_bytes())
    assert find_problem(folder, PLAN_KEY) is None
    assert find_problem(folder) == SignatureProblem.WRONG


def test_without_its_plan_no_record_is_right(folder: Path) -> None:
    (folder / PLAN_KEY).unlink()
    assert find_problem(folder) == SignatureProblem.WRONG
    with pytest.raises(KeyMissing):
        open_verifying(folder).get(PLAN_KEY)


KEYS: dict[str, tuple[str | int, ...]] = {
    "run_key": (RUN_ID,),
    "report_key": (RUN_ID,),
    **dict.fromkeys(
        ("result_key", "interrupted_key", "placement_key", "node_fault_key"), (RUN_ID, FIRST.cell_id, 1, "a1")
    ),
    "meeting_key": (RUN_ID, FIRST.cell_id, 1, "group", "window"),
    "cancelled_key": (RUN_ID, "c1"),
    "raw_removal_key": (RUN_ID, "r1"),
    "suspicion_key": ("smoke", "0a1b2c3d"),
    "decision_key": ("smoke", "0a1b2c3d"),
    "notice_key": ("smoke", "0a1b2c3d", "webhook"),
}
"""What the functions that name keys of objects are called with."""
UNSIGNED = {"report_key"}
"""Those of objects that nothing is read from."""


def test_every_kind_of_document_is_signed_or_known_to_need_no_signature() -> None:
    named = {name for name in vars(store_keys) if name.endswith("_key") and name.islower()}
    named -= {"check_key", "find_signed_run", "is_signed_key"} | {name for name in named if name.startswith("parse_")}
    assert named == KEYS.keys()
    for name, arguments in KEYS.items():
        assert is_signed_key(getattr(store_keys, name)(*arguments)) == (name not in UNSIGNED), name


@pytest.mark.parametrize("name", sorted(KEYS.keys() - UNSIGNED - {"run_key"}))
def test_what_ends_a_run_or_decides_counts_only_if_it_was_signed_in_its_place(folder: Path, name: str) -> None:
    key = getattr(store_keys, name)(*KEYS[name])
    signing, document = open_signing(folder), b'{\n "a": 1\n}'
    Store.open(f"file://{folder}").put(key, document)
    assert find_problem(folder, key) == SignatureProblem.MISSING
    signing.put(key, document)
    assert find_problem(folder, key) is None
    assert open_verifying(folder).get(key) == document
    moved = key.replace("1-a1", "1-a2").replace("0a1b2c3d", "ffffffff").replace("c1", "c2").replace("r1", "r2")
    if moved != key:
        Store.open(f"file://{folder}").put(moved, (folder / key).read_bytes())
        assert find_problem(folder, moved) == SignatureProblem.WRONG


def test_a_key_that_is_not_trusted_is_named(folder: Path) -> None:
    with pytest.raises(UnverifiedObject, match=f"{PLAN_KEY}: signed by the key {make_key().public.key_id}, which is"):
        open_verifying(folder, "other").get(PLAN_KEY)


def test_tables_are_neither_listed_nor_read(folder: Path) -> None:
    Store.open(f"file://{folder}").put("tables/attempts/x/1.parquet", b"x")
    store = open_verifying(folder)
    assert list(store.list_objects("tables/attempts/x")) == []
    with pytest.raises(UnreadableObject, match="tables are not signed"):
        store.get("tables/attempts/x/1.parquet")


def test_other_objects_are_as_they_are(folder: Path) -> None:
    store = open_signing(folder)
    store.put("latest/report.html", b"<p>")
    assert store.get("latest/report.html") == b"<p>" == (folder / "latest/report.html").read_bytes()


def test_a_record_that_has_a_right_signature_keeps_it(folder: Path) -> None:
    data = (folder / FIRST_KEY).read_bytes()
    again = SignedStore.over(Store.open(f"file://{folder}"), signer=make_key("other"), trusted=[make_key().public])
    again.put(FIRST_KEY, data)
    assert (folder / FIRST_KEY).read_bytes() == data
    with pytest.raises(UnverifiedObject):
        again.put(SECOND_KEY, data)


def test_a_store_that_only_verifies_signs_nothing(folder: Path) -> None:
    open_verifying(folder).put(FIRST_KEY, FIRST.to_json())
    assert find_problem(folder) == SignatureProblem.MISSING


def test_no_secret_is_in_what_is_stored_or_shown(folder: Path) -> None:
    secret = make_key().to_pem().splitlines()[1]
    assert not [path for path in folder.rglob("*.json") if secret in path.read_bytes()]
    assert make_key().public.key_id not in repr(open_signing(folder))


@given(st.data())
def test_no_change_of_bytes_passes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    store = SignedStore.over(Store.open(f"file://{tmp_path_factory.getbasetemp()}"), signer=make_key())
    store.run_digests[RUN_ID] = "0" * 64
    signed = store.seal(FIRST_KEY, b'{\n "a": 1,\n "b": "text"\n}')
    start = data.draw(st.integers(0, len(signed)))
    end = data.draw(st.integers(start, min(len(signed), start + 8)))
    changed = signed[:start] + data.draw(st.binary(max_size=8)) + signed[end:]
    if changed == signed:
        assert store.unseal(FIRST_KEY, changed) == b'{\n "a": 1,\n "b": "text"\n}'
        return
    with pytest.raises(UnverifiedObject):
        store.unseal(FIRST_KEY, changed)

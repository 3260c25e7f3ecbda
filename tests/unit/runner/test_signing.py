"""runner.signing: the stores that options ask for, and what is said where keys and profile do not go together."""

from pathlib import Path

import pytest

from bench.errors import UserError
from bench.signatures.signed_store import UnverifiedObject
from bench.store import Store, run_key
from factories import RUN_ID, make_run
from runner.runs import find_newest_run, find_unfinished_run, read_run
from runner.signing import check_cells_sign, find_run_digest, is_signing, sign_store, verify_store
from signing import make_key, open_signing, open_verifying, put_signed, write_keys
from stored_runs import make_own_run


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"file://{tmp_path}/store")


def test_without_keys_the_store_is_as_it_was(store: Store) -> None:
    assert sign_store(store, None, []) is store
    assert verify_store(store, []) is store
    assert not is_signing(store)
    assert find_run_digest(store, make_run()) is None


def test_a_run_trusts_its_own_key_and_those_that_it_is_given(tmp_path: Path, store: Store) -> None:
    own, other = (Path(path) for path in write_keys(tmp_path, "own", "other"))
    signing = sign_store(store, own, [other.with_name("other.pem.pub")])
    assert is_signing(signing)
    put_signed(tmp_path / "store", make_run(), [], "other")
    assert signing.get(run_key(RUN_ID)) == make_run().to_json()
    signing.put(run_key(RUN_ID), make_run().to_json())
    assert verify_store(store, [own.with_name("own.pem.pub")]).get(run_key(RUN_ID)) == make_run().to_json()


def test_a_key_to_verify_with_needs_one_to_sign_with(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--verify: what is checked here is signed here as well; add --sign FILE"):
        sign_store(store, None, [tmp_path / "x"])


def test_a_digest_is_that_of_the_stored_plan_and_else_of_the_run(tmp_path: Path) -> None:
    run, changed = make_run(), make_run(user="grace")
    signing = open_signing(tmp_path)
    of_run, of_changed = find_run_digest(signing, run), find_run_digest(signing, changed)
    assert of_run != of_changed
    signing.put(run_key(RUN_ID), run.to_json())
    assert find_run_digest(signing, changed) == find_run_digest(open_signing(tmp_path), changed) == of_run


def test_cells_and_plan_are_signed_together_or_not_at_all(tmp_path: Path, store: Store) -> None:
    check_cells_sign(store, "lab", None)
    check_cells_sign(open_signing(tmp_path), "lab", "keys")
    with pytest.raises(
        UserError, match="--sign: on a cluster the cells sign .* in the profile lab, `signing_secret: NAM"
    ):
        check_cells_sign(open_signing(tmp_path), "lab", None)
    with pytest.raises(UserError, match="profile lab: signing_secret: the plan has to be signed as well; add --sign"):
        check_cells_sign(store, "lab", "keys")


def test_a_plan_that_is_not_signed_rightly_is_not_resumed_and_is_an_error_by_its_name(tmp_path: Path) -> None:
    run = make_own_run()
    put_signed(tmp_path, run, [], "other")
    assert find_unfinished_run(open_signing(tmp_path), run) is None
    assert find_unfinished_run(open_signing(tmp_path, "other"), run) == run
    with pytest.raises(UnverifiedObject, match=make_key("other").public.key_id):
        read_run(open_signing(tmp_path), run.run_id)


def test_the_newest_run_is_the_newest_one_that_is_signed_and_others_are_named(tmp_path: Path) -> None:
    old = make_own_run()
    put_signed(tmp_path, old, [])
    put_signed(tmp_path, make_run(run_id="newer"), [], "other")
    warnings: list[str] = []
    assert find_newest_run(open_verifying(tmp_path), warnings.append).run_id == old.run_id
    (warning,) = warnings
    assert warning.startswith("run newer is passed over: ")
    assert make_key("other").public.key_id in warning


def test_where_no_plan_is_signed_that_is_said(tmp_path: Path) -> None:
    put_signed(tmp_path, make_run(), [], "other")
    with pytest.raises(UserError, match="no run here that can be read, of 1; run.json of "):
        find_newest_run(open_verifying(tmp_path), lambda _: None)

"""`benchmatrix keys`, and the options of other commands that name keys."""

import stat
from collections.abc import Callable

import pytest

from bench.schema import read_run
from bench.store import Store
from factories import RUN_ID, make_result, make_run, put_documents
from runner.cli import make_command
from signing import make_key, put_signed, write_keys
from workspace import PROGRAM, Workspace

CallMain = Callable[..., tuple[int, str, str]]


def test_a_new_pair_is_for_this_user_alone_and_is_never_overwritten(call_main: CallMain, workspace: Workspace) -> None:
    code, out, _ = call_main("keys", "new")
    secret, public = workspace.folder / "signing-key.pem", workspace.folder / "signing-key.pem.pub"
    assert code == 0
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert "PRIVATE KEY" in secret.read_text()
    assert "PUBLIC KEY" in public.read_text()
    assert secret.read_text().splitlines()[1] not in out
    before = secret.read_bytes()
    code, _, err = call_main("keys", "new")
    assert (code, secret.read_bytes()) == (2, before)
    assert "signing-key.pem: is there already" in err


def test_a_public_key_that_is_there_leaves_no_secret_one_behind(call_main: CallMain, workspace: Workspace) -> None:
    (workspace.folder / "a.pem.pub").write_text("mine")
    code, _, err = call_main("keys", "new", "--output", "a.pem")
    assert code == 2
    assert "a.pem.pub: is there already" in err
    assert not (workspace.folder / "a.pem").exists()


@pytest.mark.parametrize("place", ["", ".", "./", "/"])
def test_a_folder_is_no_place_for_a_key(call_main: CallMain, workspace: Workspace, place: str) -> None:
    code, _, err = call_main("keys", "new", "--output", place)
    assert code == 2
    assert "is a folder; name the file for the key in it" in err


def test_a_disk_that_is_full_leaves_no_part_of_a_key(workspace: Workspace) -> None:
    full = 'ulimit -f 0; exec "$@"'  # no file may get a byte
    done = workspace.call("sh", "-c", full, "sh", *PROGRAM, "keys", "new")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--output signing-key.pem: cannot be written" in done.stderr
    assert list(workspace.folder.glob("signing-key*")) == []


def test_keys_are_shown_by_their_names_and_public_ones_as_they_are(call_main: CallMain, workspace: Workspace) -> None:
    (path,) = write_keys(workspace.folder, "own")
    key = make_key("own")
    assert call_main("keys", "show", path)[:2] == (0, f"{key.public.key_id} secret\n")
    assert call_main("keys", "show", f"{path}.pub")[:2] == (0, f"{key.public.key_id} public\n")
    for file in (path, f"{path}.pub"):
        assert call_main("keys", "show", file, "--public")[:2] == (0, key.public.to_pem().decode())


@pytest.mark.parametrize("words", [("keys", "show", "none.pem"), ("report", "--verify", "none.pem")])
def test_a_key_that_is_not_there_is_one_message(
    call_main: CallMain, workspace: Workspace, words: tuple[str, ...]
) -> None:
    put_documents(Store.open(f"file://{workspace.folder}/results"), make_run(), [])
    code, out, err = call_main(*words)
    assert (code, out) == (2, "")
    assert "none.pem: there is no such file; expected a key in PEM" in err


def test_collect_says_what_was_signed_and_what_was_not(call_main: CallMain, workspace: Workspace) -> None:
    (path,) = write_keys(workspace.folder, "own")
    results = workspace.folder / "results"
    put_signed(results, make_run(repeats=2), [make_result()])
    put_documents(Store.open(f"file://{results}"), read_run((results / f"runs/{RUN_ID}/run.json").read_bytes()), [])
    code, _, err = call_main("collect", RUN_ID, "--verify", f"{path}.pub")
    assert code == 2  # written again by a store that signs nothing
    assert f"runs/{RUN_ID}/run.json: not signed" in err

    put_signed(results, make_run(repeats=2), [make_result()])
    put_documents(Store.open(f"file://{results}/other"), make_run(), [])
    unsigned = make_result(repeat=2)
    Store.open(f"file://{results}").put(f"runs/{RUN_ID}/results/{unsigned.cell_id}/2-a1.json", unsigned.to_json())
    code, out, _ = call_main("collect", RUN_ID, "--verify", f"{path}.pub", "--output", "out")
    assert code == 0
    assert "signatures: right of the plan and of 1 result; 1 document left out: 1 not signed\n" in out
    assert f"{unsigned.cell_id}/2-a1.json,not signed" in (workspace.folder / "out" / "skipped.csv").read_text()
    assert not (results / "tables").exists()


def test_every_command_that_reads_results_can_be_told_to_verify_them() -> None:
    options = {
        name: {option for param in command.params for option in param.opts}
        for name, command in make_command().commands.items()
    }
    # `probe` keeps nothing; `render` estimates; `cancel`, `clean` and `doctor` read no figures.
    exempt = {"cancel", "clean", "doctor"}
    assert {name for name, found in options.items() if "--store" in found and "--verify" not in found} - exempt == {
        "render"
    }
    assert "--sign" in options["run"]

"""Commands that read results, on stores that go away, are full, or hold what does not belong there.

Each says it in one message, and loses nothing: where the store is well again, the same command has the same answer.
"""

from collections.abc import Iterator

import pytest

from bench.store import Store, StoreError, StoreUnreachable
from nights import SLOWED, SimulatedNights
from workspace import CallMain, Workspace

COMMANDS = {
    "report": ("report", "night-0", "--format", "csv,parquet", "--output", "tables"),
    "compare": ("compare", "night-0", "night-2"),
    "watch": ("watch",),
}
every_command = pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)


@pytest.fixture
def store(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with three nights, of which the last has a cell that takes twice as long."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(workspace.folder / "cache"))
    nights = SimulatedNights(store=Store.open(f"file://{workspace.folder}/results"))
    for number in range(3):
        nights.put_night(number, factors={SLOWED.cell_id: 2.0} if number == 2 else {})
    return nights.store


def list_documents(store: Store) -> list[str]:
    return sorted(key for key in store.list_keys("") if not key.startswith("tables/"))


@pytest.mark.parametrize(("kind", "expected"), [(StoreUnreachable, 75), (StoreError, 2)])
@every_command
def test_a_store_that_goes_away_is_one_message_and_nothing_is_lost(
    call_main: CallMain,
    store: Store,
    words: tuple[str, ...],
    kind: type[StoreError],
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = list_documents(store)
    get_listed = Store.get_listed

    def stop(self: Store, keys: object, **options: int) -> Iterator[object]:
        for number, (key, data) in enumerate(get_listed(self, keys, **options)):  # type: ignore[arg-type]
            if "/results/" in key and number == 4:
                raise kind("store s3://bucket: it is gone")
            yield key, data

    with monkeypatch.context() as patch:
        patch.setattr(Store, "get_listed", stop)
        code, _, err = call_main(*words)
    last = err.splitlines()[-1]
    assert (code, last.partition(" ")[0], "store s3://bucket: it is gone" in last) == (expected, "error:", True)
    assert "Traceback" not in err
    assert list_documents(store) == documents
    code, out, err = call_main(*words)
    assert code != expected
    assert "error" not in err
    assert out

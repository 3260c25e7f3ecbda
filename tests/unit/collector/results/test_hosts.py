"""Which results are of one host: hand-made places that share a name, a boot, an id or a card."""

from datetime import UTC, datetime, timedelta

import pytest

from collector.results.hosts import Place, name_hosts

MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)


def place(boot: str | None, *, ids: str | None = None, card: str | None = None, minutes: float = 0) -> Place:
    """Return a place called `vm`, booted so many minutes after midnight."""
    booted_at = None if boot is None else MIDNIGHT + timedelta(minutes=minutes)
    return Place(hostname="vm", boot_id=boot, booted_at=booted_at, lasting_ids=ids, gpu_uuid=card)


@pytest.mark.parametrize(
    ("places", "num_hosts"),
    [
        ([place("a"), place("a", card="GPU-1")], 1),
        ([place("a"), place("b")], 2),
        # A reboot, where something outlives it: a card, an id, or one of several.
        ([place("a", card="GPU-1"), place("b", card="GPU-1")], 1),
        ([place("a", card="GPU-1, GPU-2"), place("b", card="GPU-2")], 1),
        ([place("a", ids="x"), place("b", ids="x")], 1),
        ([place("a", ids="x"), place("b", ids="x, y"), place("c", ids="y")], 1),
        # The results of a CPU are known by the card that another result of their boot names.
        ([place("a"), place("a", card="GPU-1"), place("b", card="GPU-1"), place("b")], 1),
        ([place("a"), place("a", card="GPU-1"), place("b", card="GPU-2"), place("b")], 2),
        # One boot with two cards is one host.
        ([place("a", card="GPU-1"), place("a", card="GPU-2")], 1),
        # Two machines that were restored from one snapshot have the boot's id from it.
        ([place("a"), place("a", minutes=30)], 2),
        # The clock was set while the machine ran, twice.
        ([place("a"), place("a", minutes=0.5), place("a", minutes=1.2)], 1),
        # Without a boot the name is all that is known, unless the name stands for several hosts.
        ([place(None), place(None, card="GPU-1")], 1),
        ([place(None), place("a")], 1),
        ([place(None, card="GPU-1"), place("a")], 1),
        # A card that the one known host is not known to have is no evidence of that host, nor is the name then.
        ([place(None, card="GPU-2"), place("a", card="GPU-1")], 2),
        ([place(None), place(None, card="GPU-2"), place("a", card="GPU-1")], 2),
        ([place(None), place(None, card="GPU-1"), place("a", card="GPU-1")], 1),
        ([place(None), place("a"), place("b")], 3),
        ([place(None, card="GPU-1"), place("a", card="GPU-1"), place("b")], 2),
        # An id is enough where the boot cannot be read.
        ([place(None, ids="x"), place("a", ids="x")], 1),
        ([place(None, ids="x"), place(None, ids="y")], 2),
    ],
)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_places_of_one_name_are_one_host_where_something_says_so(
    places: list[Place], num_hosts: int, is_reversed: bool
) -> None:
    found = name_hosts(places[::-1] if is_reversed else places)
    assert len(set(found.values())) == num_hosts


def test_a_host_has_its_name_alone_unless_that_stands_for_several() -> None:
    nowhere = Place(hostname=None, boot_id=None, booted_at=None, lasting_ids=None, gpu_uuid=None)
    assert name_hosts([place("3f2a9c1d-0000"), nowhere]) == {place("3f2a9c1d-0000"): "vm", nowhere: None}
    first, again = place("3f2a9c1d-0000", card="GPU-1", minutes=90), place("aaaaaaaa-1", card="GPU-1", minutes=120)
    other, old = place("00000000-2", minutes=300), place(None)
    assert name_hosts([again, first, other, old]) == {
        first: "vm (boot 3f2a9c1d of 2026-11-21 01:30:00)",
        again: "vm (boot 3f2a9c1d of 2026-11-21 01:30:00)",
        other: "vm (boot 00000000 of 2026-11-21 05:00:00)",
        old: "vm (boot not recorded)",
    }

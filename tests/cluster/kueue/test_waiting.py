"""Jobs that a real Kueue does not start: what the runner and `status` say of them, and that they run once they may."""

from queues import Queues, make_groups
from runs import Setup, Site, make_cells, wait_for
from users import connect_as_runner

from control_plane import ControlPlane
from runner.kubernetes.run import inspect_run

ENOUGH = {"cpu": "8", "memory": "64Gi", "ephemeral-storage": "1Ti"}
NO_MEMORY = ENOUGH | {"memory": "0"}
NARROW = ENOUGH | {"memory": "2Gi"}
"""Less than the 3 GiB that a cell of the profile `kind` requests."""


def make_waiting(site: Site, queue: str) -> Setup:
    """Return a run of one cell, whose queue is its name."""
    return site.make_setup(make_cells(1), run_id=f"{site.namespace}-{queue}", queue=queue)


def check_explained(setup: Setup, expected: str, told: str) -> None:
    """Check that the runner warned of it once, and that `status`, of somebody who may read Workloads, tells why."""
    wait_for(lambda: setup.observed.warnings, f"a warning about the queue {setup.queue}")
    (warning,) = setup.observed.warnings
    assert warning.startswith("in the queue, not started: ")
    assert expected in warning
    run_id, store_url = setup.run.run_id, setup.store.url
    _, lines = inspect_run(setup.connection, setup.profile.namespace, run_id, store_url, 1)
    assert lines[0] == "Jobs: 1 queued by Kueue"
    assert lines[1].startswith("  1 queued: ")
    assert told in lines[1]


def test_a_job_that_kueue_does_not_start_is_explained_and_waits(
    queues: Queues, site: Site, control_plane: ControlPlane
) -> None:
    flavor = queues.add_flavor()
    names = {name: queues.add(name, {flavor: quota}) for name, quota in (("zero", NO_MEMORY), ("narrow", NARROW))}
    names["held"] = queues.add("held", {flavor: ENOUGH}, stopPolicy="Hold")
    names["unread"] = queues.add("unread", {flavor: ENOUGH}, stopPolicy="Hold")
    site.start_kubelet(num_nodes=2)
    setups = {name: make_waiting(site, name) for name in (*names, "missing")}
    runs = {name: setup.start() for name, setup in setups.items() if name != "unread"}
    runs["unread"] = setups["unread"].start(connect_as_runner(site.connection, control_plane, site.namespace))

    words = {
        "zero": f"insufficient quota for memory in flavor {flavor}",
        "narrow": "> maximum capacity (",  # 2Gi) or 3Gi > 2Gi), as the version of Kueue says it
        "held": f"ClusterQueue {names['held']} is inactive",
        "missing": "LocalQueue missing doesn't exist",
        "unread": 'why they wait is not known: workloads.kueue.x-k8s.io is forbidden: User "runner-of-the-tests"',
    }
    for name, expected in words.items():
        check_explained(setups[name], expected, "is inactive" if name == "unread" else expected)

    for name in ("zero", "narrow"):
        queues.patch(names[name], resourceGroups=make_groups({flavor: ENOUGH}))
    for name in ("held", "unread"):
        queues.patch(names[name], stopPolicy="None")
    queues.add_local_queue("missing", names["held"])

    for name, run in runs.items():
        assert [result.status for result in run.result().results] == ["ok"]
        assert list(setups[name].count_records().values()) == [1]

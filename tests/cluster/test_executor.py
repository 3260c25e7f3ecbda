"""runner.kubernetes.executor on a real API server, scheduler and Job controller: each repeat ends with one record."""

from runs import Site, check_all_once, make_cells

from bench.schema import Cell
from fake_kubelet import Pod, read_variables
from runner.matrix import order_repeats


def test_every_repeat_is_measured_once_and_has_its_record(site: Site) -> None:
    kubelet = site.start_kubelet(num_nodes=3)
    setup = site.make_setup(make_cells(4), repeats=3)

    assert setup.measure().warnings == []

    check_all_once(setup, kubelet, 12)


def test_jobs_are_submitted_in_the_order_that_was_drawn_for_the_run(site: Site) -> None:
    site.start_kubelet(num_nodes=1)
    setup = site.make_setup(make_cells(4), repeats=2, max_in_flight=1)
    setup.run = setup.run.model_copy(update={"order_seed": 5})

    observed = setup.measure()

    drawn = [repeat.key for repeat in order_repeats(setup.run.cells, 5)]
    assert [(result.cell_id, result.repeat) for result in observed.results] == drawn
    assert drawn != [repeat.key for repeat in order_repeats(setup.run.cells, None)]


ENDS = {
    "failed-record": ("failed", "exception", ""),
    "oom": ("oom", "out-of-memory", "killed by the kernel's OOM killer"),
    "user-error": ("failed", "bad-configuration", "BENCH_STORE: not set"),
    "crash": ("failed", "killed", "ended by SIGSEGV"),
    "no-record": ("failed", "exit", "the container ended well and left no result that counts in file://"),
    "image": ("failed", "bad-image", 'cannot be pulled: ImagePullBackOff: Back-off pulling image "x": not found'),
    # Though it ended as by SIGTERM.
    "over-limit": (
        "failed",
        "killed",
        'evicted by the kubelet: Usage of EmptyDir volume "tmp" exceeds the limit "8Gi".',
    ),
}


def test_each_end_leaves_its_record_and_is_not_retried(site: Site) -> None:
    started: list[str] = []

    def decide(pod: Pod) -> str:
        seed = Cell.model_validate_json(read_variables(pod)["BENCH_CELL"]).seed
        started.append(list(ENDS)[seed])
        return started[-1]

    site.start_kubelet(decide, num_nodes=2)
    setup = site.make_setup(make_cells(len(ENDS)))

    observed = setup.measure()

    assert sorted(started) == sorted(ENDS)
    assert set(setup.count_records().values()) == {1}
    results = sorted(observed.results, key=lambda result: result.cell.seed)
    for result, (status, kind, message) in zip(results, ENDS.values(), strict=True):
        assert result.error is not None
        assert (result.status, result.error.kind) == (status, kind)
        assert message in result.error.message

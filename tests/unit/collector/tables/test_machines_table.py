"""The table of machines: which differ, and what stands beside them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.schema import Calibration, Cell, Node, Result
from bench.store import Store, placement_key
from collector.analysis import analyze_run
from collector.comparisons import FRAMEWORKS, compare_cells
from collector.results.collection import Collection
from collector.results.frames import list_rows
from collector.results.load import load_run
from collector.results.summary import summarize_cells
from collector.tables.environments import make_machines_table, tabulate_machines
from factories import make_cell, make_environment, make_gpu, make_host_figures, make_placement, make_result, make_run
from factories import put_documents as put_all

PYTORCH, TENSORFLOW = make_cell(), make_cell(framework="tensorflow")
NODES = {
    "node-a": Node(instance_type="m6i.xlarge", zone="eu-central-1a"),
    "node-b": Node(instance_type="m6i.xlarge", zone="eu-central-1b"),
    "node-c": Node(instance_type="m6i.xlarge", zone="eu-central-1a"),
}
CollectOnNodes = Callable[..., Collection]


def make_on(cell: Cell, repeat: int, node: str, seconds: float, **fields: Any) -> Result:
    environment = make_environment(hostname=node)
    return make_result(
        cell, repeat=repeat, attempt=f"{node}-{repeat}", step_seconds=(seconds,) * 3, environment=environment, **fields
    )


@pytest.fixture
def collect_on_nodes(tmp_path: Path) -> CollectOnNodes:
    def collect(*results: Result) -> Collection:
        run = make_run(
            list({result.cell_id: result.cell for result in results}.values()), repeats=6, executor="kubernetes"
        )
        store = Store.open(f"file://{tmp_path}")
        put_all(store, run, results)
        for result in results:
            assert result.environment is not None
            name = result.environment.hostname
            placed = make_placement(result, NODES.get(name), node_name=name)
            store.put(placement_key(run.run_id, result.cell_id, result.repeat, result.attempt), placed.to_json())
        return load_run(store, run.run_id)

    return collect


def measure_nodes(slow: float = 1.0, copies: float = 1.0, noise: float = 0.01) -> list[Result]:
    """Return two cells on three nodes, two repeats each; node-c takes `slow` times as long and copies `copies` as fast.

    `noise`: by how much more the second of two repeats takes, and copies.
    """
    nodes = {"node-a": (1.0, 1.0), "node-b": (1.0, 1.0), "node-c": (slow, copies)}
    return [
        make_on(
            cell,
            2 * index + extra + 1,
            node,
            base * factor * (1 + noise * extra),
            host_peak=make_host_figures(before=4e10 / factor, after=3e10 / factor),
            calibration=Calibration(
                copy_bytes_per_second=2e10 * rate * (1 + noise * extra), copy_bytes=2**27, num_threads=2, seconds=0.5
            ),
        )
        for cell, base in ((PYTORCH, 0.1), (TENSORFLOW, 0.3))
        for index, (node, (factor, rate)) in enumerate(nodes.items())
        for extra in (0, 1)
    ]


def test_a_slow_node_is_named_with_its_factor(collect_on_nodes: CollectOnNodes) -> None:
    table = make_machines_table(analyze_run(collect_on_nodes(*measure_nodes(slow=1.2))))

    rows = {row[0]: row for row in table.format_rows()}
    # 1.2 over the geometric mean of 1, 1 and 1.2 is 1.129; the product is as much slower: 0.886
    assert (*rows["node-c"][1:7], rows["node-c"][9]) == (
        "m6i.xlarge",
        "eu-central-1a",
        "2",
        "4",
        "33.3",
        "0.886",
        "1.13",
    )
    assert [rows[name][-1] for name in sorted(rows)] == ["faster", "faster", "slower"]
    # The intervals of three together: each excludes 1, where its verdict says so.
    ends = [[float(end) for end in rows[name][-2].split(" to ")] for name in sorted(rows)]
    assert [(low > 1) - (high < 1) for low, high in ends] == [-1, -1, 1]
    judged = tabulate_machines(collect_on_nodes(*measure_nodes(slow=1.2)).results)
    alone, joint = ([judged[f"{name}_{end}"] for end in ("low", "high")] for name in ("time_factor", "joint"))
    assert (joint[0] < alone[0]).all()
    assert (alone[1] < joint[1]).all()
    assert "3 of 3 differ by more than the spread between repeats explains: node-a (0.941x)" in table.remark


def test_a_node_whose_memory_is_slow_is_named_by_its_calibration(collect_on_nodes: CollectOnNodes) -> None:
    table = make_machines_table(analyze_run(collect_on_nodes(*measure_nodes(copies=0.7))))

    copies = {row[0]: row[table.headings.index("copy in memory, GB/s") :][:2] for row in table.format_rows()}
    # 0.7 over the geometric mean of 1, 1 and 0.7 is 0.788
    assert copies["node-c"] == ("14.1", "0.788")
    assert "against the others of its type: node-a copies memory 1.126x (1.119 to 1.134) as fast; " in table.remark
    assert "node-c copies memory 0.788x (0.783 to 0.794) as fast." in table.remark


@pytest.mark.parametrize(("copies", "noise"), [(0.97, 0.001), (0.8, 0.5)], ids=["too little", "within the spread"])
def test_a_difference_that_is_small_or_may_be_noise_is_not_named(
    collect_on_nodes: CollectOnNodes, copies: float, noise: float
) -> None:
    results = measure_nodes(copies=copies, noise=noise)
    rows = tabulate_machines(collect_on_nodes(*results).results)
    assert rows["copy_factor"].notna().all()
    assert rows["deviation"].isna().all()


def test_a_machine_that_was_calibrated_once_is_not_said_to_differ(collect_on_nodes: CollectOnNodes) -> None:
    once = {result.environment.hostname: result for result in measure_nodes(copies=0.5) if result.environment}
    rows = tabulate_machines(collect_on_nodes(*once.values()).results)
    assert rows["deviation"].isna().all()


def test_a_ratio_across_machines_names_those_that_differ_from_their_type(collect_on_nodes: CollectOnNodes) -> None:
    results = [
        result
        for result in measure_nodes(copies=0.7)
        if result.environment and (result.cell.framework == "pytorch" or result.environment.hostname == "node-c")
    ]
    (pair,) = list_rows(compare_cells(summarize_cells(collect_on_nodes(*results)), FRAMEWORKS))
    assert "across machines: " in pair["note"]
    assert "by their calibration, against others of the type: node-a copies memory 1." in pair["note"]
    assert "node-c copies memory 0.7" in pair["note"]


def test_machines_that_share_no_cell_are_listed_without_a_verdict(collect_on_nodes: CollectOnNodes) -> None:
    collection = collect_on_nodes(make_on(PYTORCH, 1, "node-a", 0.1), make_on(TENSORFLOW, 1, "node-b", 0.1))
    table = make_machines_table(analyze_run(collection))
    assert table.remark.endswith("No two of them measured the same cell often enough to say whether they differ.")
    assert tabulate_machines(collection.results)["time_factor"].isna().all()


def test_each_card_of_a_host_is_a_machine(collect_on_nodes: CollectOnNodes) -> None:
    cell = make_cell(device="gpu")
    results = [
        make_result(
            cell,
            repeat=number,
            step_seconds=(seconds,) * 3,
            environment=make_environment(hostname="node-a", gpus=(make_gpu(uuid=f"GPU-{card}"),)),
        )
        for number, (card, seconds) in enumerate([("a", 1.0), ("a", 1.01), ("b", 1.3), ("b", 1.31)], start=1)
    ]
    rows = tabulate_machines(collect_on_nodes(*results).results)
    assert rows["machine"].to_list() == ["node-a GPU-a", "node-a GPU-b"]
    assert rows["decision"].to_list() == ["faster", "slower"]
    assert rows["gpu_name"].to_list() == ["Tesla T4"] * 2

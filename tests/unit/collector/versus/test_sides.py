"""Selections of what was measured are compared: within a run, over several runs, and between machines."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.schema import Cell
from collector.versus.question import parse_condition
from factories import make_cell, make_environment, make_gpu
from two_runs import EVEN, INFER, TRAIN, compare_runs, put_run, scale, select_sides

TENSORFLOW = make_cell(framework="tensorflow", mode="graph")


def test_frameworks_of_one_run_are_compared_by_what_differs_within_runs(tmp_path: Path) -> None:
    for day, shift in enumerate((1.0, 1.1)):  # a run shifts both, so their ratio stays
        medians = {TRAIN: scale(EVEN, shift), TENSORFLOW: scale(EVEN, 1.2 * shift)}
        put_run(tmp_path, f"n-{day}", medians, day=day)
    document = select_sides(
        tmp_path, ["n-1"], ["framework=pytorch", "mode=eager"], ["framework=tensorflow", "mode=graph"]
    )
    [cell] = document.cells
    assert (cell.label, cell.verdict) == ("conv6 train, CPU, batch 64, 32 px", "worse")
    assert cell.ratio == pytest.approx(1.2)
    assert document.noise == ()


def test_several_runs_a_side_are_the_observations(tmp_path: Path) -> None:
    for number, factor in enumerate((1.0, 1.02, 0.98)):
        put_run(tmp_path, f"before-{number}", {TRAIN: scale(EVEN, factor)}, day=number)
        put_run(tmp_path, f"after-{number}", {TRAIN: scale(EVEN, 1.2 * factor)}, day=number + 9)
    runs = [f"{name}-{number}" for name in ("before", "after") for number in range(3)]
    [cell] = select_sides(tmp_path, runs, ["run=before-*"], ["run=after-*"]).cells
    assert (cell.verdict, cell.num_repeats_a) == ("worse", 9)
    assert cell.ratio == pytest.approx(1.2)
    assert cell.ratio_low is not None
    # The runs of a side differ by 2 %, as three observations: t(4) * 0.02 * sqrt(2 / 3) is 4.5 %.
    assert cell.ratio_low == pytest.approx(1.2 / 1.0464, rel=2e-3)


def test_what_a_shift_of_all_cells_is_worth_rests_on_the_runs(tmp_path: Path) -> None:
    for number, factor in enumerate((1.0, 1.05, 0.95)):
        put_run(tmp_path, f"before-{number}", {TRAIN: scale(EVEN, factor), INFER: scale(EVEN, factor)}, day=number)
        put_run(tmp_path, f"after-{number}", {TRAIN: scale(EVEN, factor), INFER: scale(EVEN, factor)}, day=number + 9)
    runs = [f"{name}-{number}" for name in ("before", "after") for number in range(3)]
    document = select_sides(tmp_path, runs, ["run=before-*"], ["run=after-*"])
    [group] = document.together
    assert group.label == "all 2 CPU cells"
    # Both cells shift alike, so two of them say no more than one: the intervals are the same.
    assert (group.ratio_low, group.ratio_high) == pytest.approx(
        (document.cells[0].ratio_low, document.cells[0].ratio_high)
    )


def test_a_difference_of_many_cells_is_found_together(tmp_path: Path) -> None:
    cells = [make_cell(batch_size=size) for size in range(8, 24)]
    rough = (0.094, 0.1, 0.106)
    put_run(tmp_path, "a", dict.fromkeys(cells, rough))
    put_run(tmp_path, "b", dict.fromkeys(cells, scale(rough, 1.15)))
    document = compare_runs(tmp_path)
    assert document.counts == {"undecided": 16}
    assert [(group.num_cells, group.verdict) for group in document.together] == [(16, "worse")]
    assert document.exit_code == 1
    assert document.conclusion.endswith("16 undecided; all 16 CPU cells together are slower.")


@pytest.mark.parametrize(("first", "second"), [("cpu", "gpu"), ("gpu", "cpu")])
def test_two_runs_of_two_devices_are_held_against_the_noisier_one(tmp_path: Path, first: str, second: str) -> None:
    cells = make_cell(), make_cell(device="gpu")
    environment = make_environment(gpus=(make_gpu(),))
    for day, shift in enumerate((1.0, 1.2, 0.9)):  # runs shift the CPU by far more than the GPU
        steps: dict[Cell, Sequence[float]] = {cells[0]: scale(EVEN, shift), cells[1]: scale(EVEN, 1 + 0.01 * day)}
        put_run(tmp_path, f"n-{day}", steps, day=day, environment=environment)
    document = select_sides(tmp_path, ["n-0", "n-1"], [f"device={first}", "run=n-0"], [f"device={second}", "run=n-1"])
    floors = {noise.device: noise.floor for noise in document.noise}
    assert floors["gpu"] < 0.05 < 0.2 < floors["cpu"]
    assert document.cells[0].floor == floors["cpu"]


def test_what_differs_is_named_hardware_first(tmp_path: Path) -> None:
    cell = make_cell(device="gpu")
    old = make_environment(gpus=(make_gpu(),), settings={"nhwc": False})
    new = make_environment(
        gpus=(make_gpu(name="NVIDIA L4", driver_version="580.1"),), settings={"nhwc": True}, hostname="bench-2"
    )
    put_run(tmp_path, "a", {cell: EVEN}, environment=old)
    put_run(tmp_path, "b", {cell: EVEN}, environment=new)
    document = compare_runs(tmp_path)
    assert [(one.fact, one.a, one.b) for one in document.differences][:3] == [
        ("GPU name", ("Tesla T4",), ("NVIDIA L4",)),
        ("GPU driver version", ("550.54.15",), ("580.1",)),
        ("setting nhwc", ("no",), ("yes",)),
    ]
    assert document.is_between_machines
    assert document.cells[0].scope == "across machines, one card a side"
    assert [noise.is_same_machine for noise in document.noise] == [False]


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (["framework=pytorch"], ["framework=jax"], "--b framework=jax: no repeat has it; framework is pytorch"),
        (["framework=pytorch"], ["device=cpu"], "share 6 repeats; make the conditions exclude each other"),
        (["phase=train", "run=b"], ["phase=infer"], r"--a \(phase=train, run=b\): no repeat fits all of its"),
        (
            ["framework=pytorch", "phase=*"],
            ["framework=tensorflow", "phase=*", "mode=*"],
            r"not unique: 2 cells of A like conv6 .* differ in phase \(.*\); narrow it with --a KEY=VALUE",
        ),
    ],
)
def test_sides_that_make_no_comparison_are_errors(tmp_path: Path, a: list[str], b: list[str], message: str) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN, INFER: EVEN, TENSORFLOW: EVEN})
    put_run(tmp_path, "b", {INFER: EVEN})
    with pytest.raises(UserError, match=message):
        select_sides(tmp_path, ["a", "b"] if "run=b" in a else ["a"], a, b)


def test_how_long_was_measured_may_differ_where_no_cell_is_equal_in_it(tmp_path: Path) -> None:
    short, long, other = (make_cell(max_warmup_seconds=number) for number in (7.0, 8.0, 9.0))
    put_run(tmp_path, "a", {short: EVEN, long: EVEN})
    put_run(tmp_path, "b", {other: EVEN, short: EVEN})
    found = {(cell.cell_id_a, cell.cell_id_b) for cell in compare_runs(tmp_path).cells}
    assert found == {(short.cell_id, short.cell_id), (long.cell_id, other.cell_id)}


@pytest.mark.parametrize("text", ["framework", "=pytorch", "framework=", "frame=pytorch"])
def test_a_condition_is_a_known_key_with_a_value(text: str) -> None:
    with pytest.raises(UserError, match=r"--a .*(expected KEY=VALUE|did you mean 'framework'\?)"):
        parse_condition(text, "--a")


def test_conditions_take_patterns_and_name_unknown_values() -> None:
    driver = parse_condition("driver=580.*", "--a")
    assert driver.holds({"driver_version": "580.1"})
    assert not driver.holds({"driver_version": "550.1"})
    assert parse_condition("node-type=unknown", "--a").holds({"instance_type": None})
    assert parse_condition("min_seconds=2", "--a").holds({"min_seconds": 2.0})

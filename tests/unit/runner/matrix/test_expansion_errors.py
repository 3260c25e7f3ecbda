"""Errors in a matrix file and in what it makes: file, line, key, and the words, each message once."""

from pathlib import Path

import pytest

from bench.errors import UserError
from matrix_files import DEMO, OWN_CELL, catch_error, expand, swap
from runner import matrix as expansion
from runner.matrix import MAX_COMBINATIONS


def make_sweep(num_seeds: int) -> str:
    return DEMO.replace(
        "defaults: {batch_size: 16}", f"  batch_size: {list(range(1, 101))}\n  seed: {list(range(num_seeds))}"
    )


def test_a_product_above_the_limit_is_refused_before_it_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "_combine", None)
    num_seeds = MAX_COMBINATIONS // 400 + 1
    with pytest.raises(UserError) as caught:
        expand(make_sweep(num_seeds))
    expected = (
        "demo.yaml:2: axes: 1 x 2 x 1 x 2 x 100 x 251 values make 100,400 combinations, expected at most 100,000;"
    )
    assert str(caught.value).startswith(expected)


AXES = (
    "name: m\naxes: {model: [conv6], framework: [pytorch], device: [cpu], phase: [train], "
    f"batch_size: {list(range(1, 1001))}, seed: {list(range(100))}}}\n"
)
"""100,000 combinations, which is allowed."""


def test_a_plan_counts_repeats_and_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MAX_PLANNED_REPEATS", 20_000)
    with pytest.raises(UserError, match="the first 3 cells have more than 20,000 repeats, the limit"):
        expand(AXES + "defaults: {repeats: 10000}\n")


MESSAGES = [
    ("name: demo\naxes: {}\n", "2: axes: found no axis, expected at least one; write one under it, 'model: [conv6]' "),
    (
        swap("[cpu]", "[cpu, gpu,\n  cpu]"),
        "6: axes.device[2]: found the text 'cpu' again, first in line 5; keep one of the two",
    ),
    (swap("{", "{device: cpu, "), "7: defaults.device: is an axis already, which needs no default; remove it here or "),
    (
        DEMO + "exclude: [{batch_size: 16}]\n",
        "8: exclude[0].batch_size: is not an axis of this matrix, so it matches no combination; exclude by "
        "model, framework, device, phase",
    ),
    (
        DEMO + "exclude:\n- {device: gpu}\n",
        "9: exclude[0].device: found the text 'gpu', which matches no combination; the axis 'device' has cpu",
    ),
    (DEMO + "exclude:\n- device: cpu\n", "9: exclude: leave no cell: every combination of the axes is excluded; "),
    (DEMO + "include: [{}]\n", "8: include[0]: found an empty entry, expected keys with values; fill it in or "),
    (DEMO + "include: [{seed: [1]}]\n", "8: include[0].seed: found a list, expected one value: it is no axis of this "),
    (
        DEMO + "include:\n- device: gpu\n",
        "9: include[0]: matches no combination of the axes, so it is a cell of its own, and that lacks 'model', "
        "'framework', 'phase'; add what is missing, or fix the axis values",
    ),
    (
        DEMO + "include:\n" + OWN_CELL.replace("train", "[train, infer]") + OWN_CELL,
        "10: include[1]: makes the cell conv6-pytorch-gpu-train-fp32-eager-b16-6ca98d5d again, which "
        "'include[0]' in line 9 makes already; remove one of the two",
    ),
    (
        swap("defaults: {batch_size: 16}\n", ""),
        "2: axes: cells lack 'batch_size'; give each a value under 'axes' or 'defaults'",
    ),
    (
        swap("16", "16, num_gpus: 2"),
        "7: defaults.num_gpus: is 1 where device is 'cpu' (in the cell model=conv6, framework=pytorch, "
        "device=cpu, phase=train); change it, exclude the combination, or give the value in an 'include' entry "
        "for the cells that it fits",
    ),
    (swap("[conv6]", "[cyclegan]") + "include: [{num_classes: 10}]\n", "8: include[0].num_classes: "),
    (swap("phase: ", "mode: [eager,\n  graph]\n  phase: "), "7: axes.mode[1]: "),
]


@pytest.mark.parametrize(("text", "message"), MESSAGES, ids=[message[:40] for _, message in MESSAGES])
def test_an_error_says_where_it_is_what_was_expected_and_how_to_mend_it(
    tmp_path: Path, text: str, message: str
) -> None:
    assert str(catch_error(tmp_path, text)).startswith(f"{tmp_path}/demo.yaml:{message}")


def test_a_folder_that_is_not_there_is_named_with_its_whole_path(tmp_path: Path) -> None:
    error = catch_error(tmp_path, swap("16", "16, data_dir: no/such"))
    message = "expected one with data; a relative path starts at the matrix file's folder"
    assert str(error).endswith(f": defaults.data_dir: there is no folder '{tmp_path}/no/such', {message}")

"""Matrix files go in; cells as GitHub Actions would combine them, or one message with file, line and key, come out."""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench import validity
from bench.catalog import MODELS
from bench.errors import UserError
from bench.schema import MODES, Cell, PlannedCell
from runner.matrix import expansion as matrix
from runner.matrix.definition import MAX_COMBINATIONS, read_definition
from runner.matrix.expansion import Matrix, expand_matrix, list_builtin_matrices, load_matrix
from runner.yaml_files.composer import MAX_DEPTH, MAX_NODES
from runner.yaml_files.reading import parse_yaml

ROOT = Path(matrix.__file__).parents[2]

DEMO = """\
name: demo
axes:
  model: [conv6]
  framework: [pytorch, tensorflow]
  device: [cpu]
  phase: [train, infer]
defaults: {batch_size: 16}
"""


def expand(text: str) -> list[PlannedCell]:
    return list(expand_matrix(read_definition(parse_yaml(text, "demo.yaml")), Path("/matrices")))


def pick(cells: list[PlannedCell] | tuple[PlannedCell, ...], *keys: str) -> list[tuple[Any, ...]]:
    return [
        tuple(getattr(planned if key in PlannedCell.model_fields else planned.cell, key) for key in keys)
        for planned in cells
    ]


def write(folder: Path, text: str) -> Path:
    path = folder / "demo.yaml"
    path.write_text(text)
    return path


# What a matrix makes


def test_cells_are_the_product_and_the_last_axis_varies_fastest() -> None:
    cells = expand(DEMO.replace("[conv6]", "[resnet18, conv6]"))
    assert pick(cells, "model", "framework", "phase") == [
        ("resnet18", "pytorch", "train"),
        ("resnet18", "pytorch", "infer"),
        ("resnet18", "tensorflow", "train"),
        ("resnet18", "tensorflow", "infer"),
        ("conv6", "pytorch", "train"),
        ("conv6", "pytorch", "infer"),
        ("conv6", "tensorflow", "train"),
        ("conv6", "tensorflow", "infer"),
    ]


def test_sizes_come_from_the_model_and_the_rest_from_the_defaults_of_a_cell() -> None:
    cells = expand(DEMO.replace("[conv6]", "[conv6, resnet18]").replace("[pytorch, tensorflow]", "[pytorch]"))
    assert (
        pick(cells, "model", "input_size", "num_classes", "precision", "mode", "seed")
        == [("conv6", 32, 10, "fp32", "eager", 0)] * 2 + [("resnet18", 224, 1000, "fp32", "eager", 0)] * 2
    )
    assert pick(cells, "repeats", "timeout_seconds") == [(3, 600.0)] * 4


def test_a_model_without_classes_has_none_unless_others_have_them_by_default() -> None:
    text = DEMO.replace("[conv6]", "[conv6, cyclegan]").replace("[pytorch, tensorflow]", "[pytorch]")
    assert [planned.cell.num_classes for planned in expand(text)] == [10, 10, None, None]
    text = text.replace("{batch_size: 16}", "{batch_size: 16, num_classes: 7}")
    assert [planned.cell.num_classes for planned in expand(text)] == [7, 7, None, None]
    text += "include: [{model: cyclegan, num_classes: null}, {model: conv6, num_classes: 5}]\n"
    assert [planned.cell.num_classes for planned in expand(text)] == [5, 5, None, None]


def test_the_mode_that_is_not_given_is_the_first_of_the_framework() -> None:
    cells = expand(DEMO.replace("[pytorch, tensorflow]", "[pytorch, tensorflow, jax]"))
    assert (
        pick(cells, "framework", "mode")
        == [("pytorch", "eager")] * 2 + [("tensorflow", "eager")] * 2 + [("jax", "compiled")] * 2
    )


def test_a_list_in_an_entry_stands_for_each_of_its_values() -> None:
    text = DEMO.replace("[pytorch, tensorflow]", "[pytorch]").replace("[conv6]", "[conv6, vgg16, resnet18]")
    cells = expand(text + "exclude: [{model: [conv6, resnet18], phase: train}]\n")
    assert pick(cells, "model", "phase") == [
        ("conv6", "infer"),
        ("vgg16", "train"),
        ("vgg16", "infer"),
        ("resnet18", "infer"),
    ]


def test_a_list_in_an_entry_of_include_adds_to_the_combinations_of_each_value() -> None:
    text = (
        DEMO + "include: [{framework: [tensorflow], phase: [train, infer], mode: graph}, {phase: [train], seed: 5}]\n"
    )
    assert pick(expand(text), "framework", "phase", "mode", "seed") == [
        ("pytorch", "train", "eager", 5),
        ("pytorch", "infer", "eager", 0),
        ("tensorflow", "train", "graph", 5),
        ("tensorflow", "infer", "graph", 0),
    ]


def test_a_list_in_an_entry_of_include_makes_a_cell_of_each_value_that_matches_nothing() -> None:
    text = DEMO + "include: [{model: conv6, framework: [pytorch, jax], device: cpu, phase: infer, seed: 5}]\n"
    assert pick(expand(text), "framework", "phase", "seed")[:2] == [("pytorch", "train", 0), ("pytorch", "infer", 5)]
    assert pick(expand(text), "framework", "phase", "seed")[4:] == [("jax", "infer", 5)]


def test_a_folder_with_data_is_found_from_the_matrix_file_and_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study" / "data").mkdir(parents=True)
    (tmp_path / "home" / "data").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for written, expected in {
        "data": "study/data",
        "./data/": "study/data",
        "../home/data": "home/data",
        "~/data": "home/data",
        f"{tmp_path}/home": "home",
    }.items():
        write(tmp_path / "study", DEMO.replace("16", f"16, data_dir: {written}"))
        assert set(pick(load_matrix("study/demo.yaml").cells, "data_dir")) == {(str(tmp_path / expected),)}


def test_synthetic_and_real_data_can_be_an_axis(tmp_path: Path) -> None:
    write(tmp_path, DEMO.replace("axes:\n", "axes:\n  data_dir: [null, .]\n"))
    cells = load_matrix(str(tmp_path / "demo.yaml")).cells
    assert pick(cells, "data_dir") == [(None,)] * 4 + [(str(tmp_path),)] * 4


def test_a_default_folder_with_data_is_for_the_models_that_read_data(tmp_path: Path) -> None:
    text = DEMO.replace("[conv6]", "[conv6, text-classifier]").replace("16", "16, data_dir: .")
    write(tmp_path, text.replace("[pytorch, tensorflow]", "[pytorch]"))
    cells = load_matrix(str(tmp_path / "demo.yaml")).cells
    assert pick(cells, "model", "data_dir") == [("conv6", str(tmp_path))] * 2 + [("text-classifier", None)] * 2


def test_defaults_reach_every_cell_and_give_way_to_include() -> None:
    text = DEMO.replace("{batch_size: 16}", "{batch_size: 16, input_size: 64, repeats: 5, timeout_seconds: 60}")
    text += "include: [{framework: tensorflow, batch_size: 8, repeats: 1, timeout_seconds: 0.5}]\n"
    cells = expand(text)
    assert (
        pick(cells, "batch_size", "input_size", "repeats", "timeout_seconds")
        == [(16, 64, 5, 60.0)] * 2 + [(8, 64, 1, 0.5)] * 2
    )


def test_exclude_removes_every_combination_that_has_all_values_of_an_entry() -> None:
    cells = expand(DEMO + "exclude: [{framework: tensorflow, phase: train}]\n")
    assert pick(cells, "framework", "phase") == [("pytorch", "train"), ("pytorch", "infer"), ("tensorflow", "infer")]


def test_include_brings_an_excluded_combination_back_as_the_last_cell() -> None:
    text = DEMO + "exclude: [{framework: pytorch}]\n"
    text += "include: [{model: conv6, framework: pytorch, device: cpu, phase: infer, batch_size: 64}]\n"
    assert pick(expand(text), "framework", "phase", "batch_size") == [
        ("tensorflow", "train", 16),
        ("tensorflow", "infer", 16),
        ("pytorch", "infer", 64),
    ]


def test_include_that_only_names_existing_combinations_changes_nothing() -> None:
    assert expand(DEMO) == expand(DEMO + "include: [{framework: tensorflow}]\n")


def test_a_later_entry_of_include_overwrites_what_earlier_ones_added() -> None:
    cells = expand(
        DEMO + "include: [{seed: 1}, {phase: train, seed: 2, num_steps: 7}, {seed: 3}, {phase: infer, seed: 4}]\n"
    )
    assert pick(cells, "phase", "seed", "num_steps") == [("train", 3, 7), ("infer", 4, 30)] * 2


def test_include_alone_can_make_the_cells_when_all_combinations_are_excluded() -> None:
    text = DEMO + "exclude: [{device: cpu}]\n"
    text += "include: [{model: conv6, framework: pytorch, device: gpu, phase: infer}]\n"
    assert pick(expand(text), "device") == [("gpu",)]


def test_whole_numbers_serve_where_fractions_are_allowed_and_make_the_same_cell() -> None:
    whole, fraction = expand(DEMO + "include: [{min_seconds: 1}]\n"), expand(DEMO + "include: [{min_seconds: 1.0}]\n")
    assert [planned.cell.cell_id for planned in whole] == [planned.cell.cell_id for planned in fraction]


def test_the_example_of_the_github_documentation() -> None:
    # fruit: batch_size (apple 8, pear 16, banana 32); color: seed (green 1, pink 2, none 0, the default of a cell);
    # animal: min_seconds (cat 1, dog 3, none 2); shape: num_steps (circle 40, none 30).
    text = """
name: fruit
axes: {batch_size: [8, 16], min_seconds: [1, 3]}
defaults: {model: conv6, framework: pytorch, device: cpu, phase: train}
include:
  - seed: 1
  - {seed: 2, min_seconds: 1}
  - {batch_size: 8, num_steps: 40}
  - batch_size: 32
  - {batch_size: 32, min_seconds: 1}
"""
    assert pick(expand(text), "batch_size", "min_seconds", "seed", "num_steps") == [
        (8, 1, 2, 40),  # apple, cat, pink, circle
        (8, 3, 1, 40),  # apple, dog, green, circle
        (16, 1, 2, 30),  # pear, cat, pink
        (16, 3, 1, 30),  # pear, dog, green
        (32, 2, 0, 30),  # banana
        (32, 1, 0, 30),  # banana, cat
    ]


# Against a reference that works on plain dicts, loop by loop

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "batch_size": st.integers(1, 4),
    "seed": st.integers(0, 3),
    "num_steps": st.integers(5, 8),
    "min_seconds": st.sampled_from([0.5, 1, 1.0, 2.5]),
    "model": st.sampled_from(["conv6", "resnet18"]),
    "repeats": st.integers(1, 3),
}
REQUIRED = {"model": "conv6", "framework": "pytorch", "device": "cpu", "phase": "train", "batch_size": 16}
# Keys that may be axes and that a cell of its own may leave out, for they are not required.
OPTIONAL_AXES = ("seed", "num_steps", "min_seconds")


@st.composite
def draw_matrices(draw: st.DrawFn) -> dict[str, Any]:
    axes = {
        key: draw(st.lists(VALUES[key], min_size=1, max_size=3, unique=True))
        for key in draw(st.lists(st.sampled_from(OPTIONAL_AXES), min_size=1, unique=True))
    }
    on_axes = st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in axes.items()})
    anything = st.fixed_dictionaries({}, optional=VALUES)
    others = st.fixed_dictionaries({}, optional={key: value for key, value in VALUES.items() if key not in axes})
    return {
        "name": "drawn",
        "axes": axes,
        "defaults": REQUIRED | draw(others),
        "exclude": draw(st.lists(on_axes.filter(bool), max_size=3)),
        "include": draw(st.lists((on_axes | anything).filter(bool), max_size=4)),
    }


def combine_by_hand(source: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules of GitHub's documentation, word by word: axes, minus exclude, plus include; then defaults below all."""
    axes = source["axes"]
    originals = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    originals = [
        original
        for original in originals
        if not any(all(original[key] == entry[key] for key in entry) for entry in source["exclude"])
    ]
    extended = [dict(original) for original in originals]
    new = []
    for entry in source["include"]:
        was_added = False
        for original, combination in zip(originals, extended, strict=True):
            if not any(key in original and original[key] != value for key, value in entry.items()):
                combination.update(entry)
                was_added = True
        if not was_added:
            new.append(dict(entry))
    sizes = {"conv6": {"input_size": 32, "num_classes": 10}, "resnet18": {"input_size": 224, "num_classes": 1000}}
    below = {"repeats": 3, "timeout_seconds": 600} | source["defaults"]
    return [sizes[(below | made)["model"]] | below | made for made in extended + new]


def flatten(planned: PlannedCell, keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in (planned.cell.model_dump() | planned.model_dump()).items() if key in keys}


def count_distinct_cells(combinations: list[dict[str, Any]]) -> int:
    """Cells differ where anything but the repeats differs, the defaults of a cell filled in."""
    filled = [{"seed": 0, "num_steps": 30, "min_seconds": 2.0} | made for made in combinations]
    return len({tuple(sorted((key, value) for key, value in made.items() if key != "repeats")) for made in filled})


def load_or_refuse(load: Callable[[str], list[PlannedCell]], text: str) -> list[PlannedCell] | str:
    try:
        return load(text)
    except UserError as error:
        return str(error)


@given(draw_matrices())
@example(
    {"name": "x", "axes": {"seed": [1]}, "defaults": REQUIRED, "exclude": [], "include": [{"seed": 2}, {"seed": 2}]}
)
@settings(max_examples=200)
def test_expansion_agrees_with_the_reference(source: dict[str, Any]) -> None:
    expected = combine_by_hand(source)
    outcome = load_or_refuse(expand, json.dumps(source))
    if count_distinct_cells(expected) < len(expected):
        assert "again, which" in str(outcome)
    else:
        assert not isinstance(outcome, str), outcome
        assert [flatten(planned, set(made)) for planned, made in zip(outcome, expected, strict=True)] == expected
        assert len({planned.cell.cell_id for planned in outcome}) == len(expected)


@given(draw_matrices(), st.randoms(use_true_random=False))
def test_the_order_of_keys_in_entries_changes_nothing(source: dict[str, Any], random: Any) -> None:
    def shuffle(entry: dict[str, Any]) -> dict[str, Any]:
        return dict(random.sample(list(entry.items()), len(entry)))

    shuffled = {key: [shuffle(entry) for entry in source[key]] for key in ("exclude", "include")}
    shuffled["defaults"] = shuffle(source["defaults"])  # type: ignore[assignment]
    assert load_or_refuse(expand, json.dumps(source)) == load_or_refuse(expand, json.dumps(source | shuffled))


@given(draw_matrices(), st.data())
def test_lists_in_entries_mean_the_entries_written_out(source: dict[str, Any], data: st.DataObject) -> None:
    with_lists: dict[str, list[dict[str, Any]]] = {"exclude": [], "include": []}
    written_out: dict[str, list[dict[str, Any]]] = {"exclude": [], "include": []}
    for kind in with_lists:
        for entry in source[kind]:
            lists = {
                key: data.draw(st.lists(st.sampled_from(values), min_size=1, unique=True))
                for key, values in source["axes"].items()
                if key in entry
            }
            with_lists[kind].append(entry | lists)
            combinations = itertools.product(*lists.values())
            written_out[kind] += [entry | dict(zip(lists, values, strict=True)) for values in combinations]
    expected = load_or_refuse(expand, json.dumps(source | written_out))
    outcome = load_or_refuse(expand, json.dumps(source | with_lists))
    assert expected == outcome or (isinstance(expected, str) and isinstance(outcome, str))


def test_lists_of_an_entry_are_combined_in_the_order_of_the_axes() -> None:
    include = {"num_steps": [6, 7], "seed": [2, 3]}
    source = {"name": "x", "axes": {"seed": [1], "num_steps": [5]}, "defaults": REQUIRED, "include": []}
    sources = [source | {"include": [dict(entry)]} for entry in (include.items(), reversed(include.items()))]
    for found in sources:
        cells = [planned.cell for planned in expand(json.dumps(found))]
        assert [(cell.seed, cell.num_steps) for cell in cells] == [(1, 5), (2, 6), (2, 7), (3, 6), (3, 7)]


# Ids


def test_a_cell_id_ends_in_the_sha_256_of_its_canonical_json() -> None:
    for planned in load_matrix("smoke").cells:
        text = json.dumps(planned.cell.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        digits = planned.cell.cell_id.rpartition("-")[2]
        assert 8 <= len(digits)
        assert hashlib.sha256(text.encode()).hexdigest().startswith(digits)


def test_cell_ids_are_the_same_in_a_process_with_another_hash_seed() -> None:
    program = (
        "from runner.matrix.expansion import load_matrix; print(*[p.cell.cell_id for p in load_matrix('smoke').cells])"
    )
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    assert printed.stdout.decode().split() == [planned.cell.cell_id for planned in load_matrix("smoke").cells]


# Names and paths


def test_every_built_in_matrix_loads_and_bears_the_name_of_its_file() -> None:
    assert "smoke" in list_builtin_matrices()
    for name in list_builtin_matrices():
        loaded = load_matrix(name)
        assert loaded.name == name
        assert loaded.description
        assert loaded.source.endswith(f"matrices/{name}.yaml")


def test_smoke_compares_both_frameworks_on_every_model_phase_and_device_three_times() -> None:
    cells = load_matrix("smoke").cells
    combinations = list(
        itertools.product(["conv6", "resnet18"], ["cpu", "gpu"], ["train", "infer"], ["pytorch", "tensorflow"], [3])
    )
    assert pick(cells, "model", "device", "phase", "framework", "repeats") == combinations


@pytest.mark.parametrize("name", list_builtin_matrices())
def test_every_window_of_the_built_in_matrices_is_long_enough_to_be_valid(name: str) -> None:
    cells = [planned.cell for planned in load_matrix(name).cells]
    seconds = validity.MIN_WINDOW_SECONDS
    assert [cell.cell_id for cell in cells if cell.min_seconds < seconds] == []
    few = [cell for cell in cells if cell.num_steps < validity.MIN_STEPS]
    enough = (validity.MIN_LONG_STEPS, validity.MIN_LONG_WINDOW_SECONDS)
    assert [c.cell_id for c in few if c.num_steps < enough[0] or c.min_seconds < enough[1]] == []


def test_paper_compares_three_frameworks_on_the_same_work_of_every_model_phase_and_device() -> None:
    batches = {
        ("conv6", "train"): [16],
        ("vgg16", "train"): [2],
        ("resnet18", "train"): [4],
        ("cyclegan", "train"): [1],
    }
    batches |= {("conv6", "infer"): [1, 16], ("vgg16", "infer"): [1, 2], ("resnet18", "infer"): [1, 4]}
    batches |= {("cyclegan", "infer"): [1]}
    frameworks = [("pytorch", "eager"), ("tensorflow", "graph"), ("jax", "compiled")]
    sizes = {"conv6": (32, 10), "vgg16": (224, 10), "resnet18": (224, 10), "cyclegan": (64, None)}
    expected = {
        (model, phase, batch, device, framework, mode, *sizes[model], "fp32", 3)
        for (model, phase), numbers in batches.items()
        for batch in numbers
        for device in ("cpu", "gpu")
        for framework, mode in frameworks
    }
    keys = ("model", "phase", "batch_size", "device", "framework", "mode", "input_size", "num_classes", "precision")
    cells = load_matrix("paper").cells
    assert set(pick(cells, *keys, "repeats")) == expected
    assert len(cells) == len(expected)


def test_paper_gpu_has_the_studys_sizes_every_mode_in_fp32_and_every_precision_compiled() -> None:
    cells = load_matrix("paper-gpu").cells
    assert set(pick(cells, "model", "input_size")) == {
        ("conv6", 224),
        ("vgg16", 224),
        ("resnet18", 224),
        ("cyclegan", 256),
    }
    modes = {(framework, mode) for framework, modes in MODES.items() for mode in modes}
    trained = [planned for planned in cells if planned.cell.phase == "train"]
    for model, batch_size in (("conv6", 64), ("vgg16", 64), ("resnet18", 64), ("cyclegan", 1)):
        expected = {(batch_size, framework, mode, "fp32") for framework, mode in modes}
        expected |= {
            (batch_size, framework, "compiled", precision)
            for framework in MODES
            for precision in ("tf32", "fp16", "bf16")
        }
        own = [planned for planned in trained if planned.cell.model == model]
        assert set(pick(own, "batch_size", "framework", "mode", "precision")) == expected
        assert len(own) == len(expected)
    inferred = [planned for planned in cells if planned.cell.phase == "infer" and planned.cell.precision == "fp32"]
    assert set(pick(inferred, "model", "batch_size")) == {
        (model, size) for model in ("conv6", "vgg16", "resnet18") for size in (1, 8, 64)
    } | {("cyclegan", 1)}
    assert set(pick(cells, "device")) == {("gpu",)}


def test_a_path_loads_and_is_shown_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, DEMO)
    monkeypatch.chdir(tmp_path)
    expected = Matrix(name="demo", description="", cells=tuple(expand(DEMO)), source="demo.yaml")
    assert load_matrix("demo.yaml") == expected
    assert load_matrix("./demo.yaml") == expected
    assert load_matrix(str(tmp_path / "demo.yaml")) == expected


def test_a_file_without_extension_loads_by_its_bare_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").write_text(DEMO)
    monkeypatch.chdir(tmp_path)
    assert len(load_matrix("mine").cells) == 4


def test_an_unknown_name_gets_the_nearest_and_the_list() -> None:
    with pytest.raises(UserError) as caught:
        load_matrix("smoek")
    assert "matrix 'smoek': is neither a built-in matrix nor a file; did you mean 'smoke'?" in str(caught.value)
    assert ", ".join(list_builtin_matrices()) in str(caught.value)


@pytest.mark.parametrize("name", ["", "x" * 5000, "line\nbreak"])
def test_an_impossible_name_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(UserError, match="^matrix '.{0,70}': is neither") as caught:
        load_matrix(name)
    assert "\n" not in str(caught.value)


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.yaml: there is no such file"):
        load_matrix(str(tmp_path / "none.yaml"))
    with pytest.raises(UserError, match="none: there is no such file"):
        load_matrix(str(tmp_path / "none"))


# Faults


def swap(old: str, new: str) -> str:
    assert old in DEMO
    return DEMO.replace(old, new)


OWN_CELL = "- {model: conv6, framework: pytorch, device: gpu, phase: train}\n"

# What is at fault; the file; the line and the key that the message names; words that it holds.
FAULTS = [
    # the top level
    ("nothing but a marker", "---\n", 2, "", "found nothing, expected keys with values"),
    ("list at the top", "- name: demo\n", 1, "", "found a list, expected keys with values"),
    ("text at the top", "\nhello\n", 2, "", "found the text 'hello', expected keys with values"),
    ("misspelt key at the top", DEMO + "exlude: []\n", 8, "exlude", "unknown key; did you mean 'exclude'?"),
    ("strange key at the top", DEMO + "on: push\n", 8, "on", "known are name, description, axes"),
    ("cell key at the top", DEMO + "seed: 1\n", 8, "seed", "put it under 'axes' or 'defaults'"),
    ("repeats at the top", DEMO + "repeats: 1\n", 8, "repeats", "put it under 'defaults'"),
    ("duplicate key", DEMO + "name: x\n", 8, "name", "the key stands twice, first in line 1"),
    ("no name", swap("name: demo\n", ""), 1, "name", "the key is missing"),
    ("no axes", "name: demo\n", 1, "axes", "the key is missing"),
    (
        "capitals in the name",
        swap("demo", "Demo"),
        1,
        "name",
        "found the text 'Demo', expected a name of a-z, 0-9 and '-'",
    ),
    ("number as the name", swap("demo", "7"), 1, "name", "found the number 7, expected a name"),
    (
        "YAML 1.1 bool as the name",
        swap("demo", "on"),
        1,
        "name",
        "found `on`, which YAML 1.1 reads as true",
        "; put it in quotes",
    ),
    ("list as the description", DEMO + "description: [a]\n", 8, "description", "found a list, expected a text"),
    (
        "half a character as the description",
        DEMO + 'description: "\\ud800"\n',
        8,
        "description",
        "found half a character",
    ),
    # axes
    ("axes that are a list", "name: demo\naxes: [model]\n", 2, "axes", "found a list, expected keys with values"),
    ("axes without value", "name: demo\naxes:\n", 2, "axes", "found nothing, expected keys with values"),
    ("axes without axis", "name: demo\naxes: {}\n", 2, "axes", "found no axis, expected at least one"),
    ("empty axis", swap("[conv6]", "[]"), 3, "axes.model", "found an empty list, expected at least one value"),
    ("scalar axis", swap("[conv6]", "conv6"), 3, "axes.model", "expected a list of values; write 'model: [conv6]'"),
    (
        "axis without value",
        swap("[conv6]", ""),
        3,
        "axes.model",
        "found nothing, expected a list of values; write 'model: [...]'",
    ),
    ("axis that is a mapping", swap("[conv6]", "{a: 1}"), 3, "axes.model", "found a mapping, expected a list"),
    (
        "list in an axis",
        swap("[cpu]", "[[cpu]]"),
        5,
        "axes.device[0]",
        "found a list, expected 'cpu' or 'gpu'; write one",
    ),
    ("null in an axis", swap("[cpu]", "[cpu, ~]"), 5, "axes.device[1]", "found nothing (`~`), expected 'cpu' or 'gpu'"),
    ("misspelt axis", swap("phase", "fase"), 6, "axes.fase", "unknown key; did you mean 'phase'?"),
    ("repeats as axis", swap("phase", "repeats"), 6, "axes.repeats", "cannot be an axis; put it under 'defaults'"),
    ("version as axis", swap("phase", "schema_version"), 6, "axes.schema_version", "unknown key"),
    ("misspelt framework", swap("pytorch", "pytroch"), 4, "axes.framework[0]", "did you mean 'pytorch'?"),
    ("capitals in a value", swap("cpu", "CPU"), 5, "axes.device[0]", "found the text 'CPU'", "did you mean 'cpu'?"),
    (
        "misspelt model",
        swap("conv6", "conf6"),
        3,
        "axes.model[0]",
        "expected 'conv6' or 'vgg16' or",
        "; did you mean 'conv6'?",
    ),
    ("model far from all", swap("conv6", "gpt"), 3, "axes.model[0]", "found the text 'gpt', expected 'conv6' or"),
    (
        "YAML 1.1 bool in an axis",
        swap("[cpu]", "[no]"),
        5,
        "axes.device[0]",
        "found `no`, which YAML 1.1 reads as false",
    ),
    ("duplicate value", swap("[cpu]", "[cpu, gpu,\n  cpu]"), 6, "axes.device[2]", "again, first in line 5"),
    (
        "duplicate number",
        swap("phase: ", "min_seconds: [1, 1.0]\n  phase: "),
        6,
        "axes.min_seconds[1]",
        "number 1.0 again",
    ),
    # defaults
    ("misspelt default", swap("batch_size", "batchsize"), 7, "defaults.batchsize", "did you mean 'batch_size'?"),
    ("axis as default", swap("{", "{device: cpu, "), 7, "defaults.device", "is an axis already"),
    (
        "quoted number",
        swap("16", "'16'"),
        7,
        "defaults.batch_size",
        "a whole number, at least 1, at most 1000000000; write 16 without quotes",
    ),
    ("exponent without point", swap("16", "1e3"), 7, "defaults.batch_size", "found the text '1e3'", "; write 1000"),
    ("fraction", swap("16", "16.0"), 7, "defaults.batch_size", "found the number 16.0", "; write 16"),
    (
        "bool where a number belongs",
        swap("16", "true"),
        7,
        "defaults.batch_size",
        "found `true`, expected a whole number",
    ),
    ("YAML 1.1 bool as number", swap("16", "yes"), 7, "defaults.batch_size", "`yes`, which YAML 1.1 reads as true"),
    (
        "nothing where a number belongs",
        swap("16", ""),
        7,
        "defaults.batch_size",
        "found nothing, expected a whole number",
    ),
    ("text where a number belongs", swap("16", "many"), 7, "defaults.batch_size", "found the text 'many'"),
    ("list where a number belongs", swap("16", "[16]"), 7, "defaults.batch_size", "found a list", "write one value"),
    ("mapping as a number", swap("16", "{a: 1}"), 7, "defaults.batch_size", "found a mapping", "write one value"),
    ("zero", swap("16", "0"), 7, "defaults.batch_size", "found the number 0, expected a whole number, at least 1"),
    (
        "negative",
        swap("16", "-4"),
        7,
        "defaults.batch_size",
        "found the number -4, expected a whole number, at least 1",
    ),
    ("octal", swap("16", "016"), 7, "defaults.batch_size", "found '016', which YAML 1.1 does not read as a decimal"),
    (
        "size too small",
        swap("16", "16, input_size: 1"),
        7,
        "defaults.input_size",
        "expected a whole number, at least 2, at most 65536",
    ),
    ("zero seconds", swap("16", "16, timeout_seconds: 0"), 7, "defaults.timeout_seconds", "a finite number, above 0"),
    ("infinity", swap("16", "16, timeout_seconds: .inf"), 7, "defaults.timeout_seconds", "found the number .inf"),
    (
        "not a number",
        swap("16", "16, min_seconds: .nan"),
        7,
        "defaults.min_seconds",
        "the number .nan, expected a finite",
    ),
    ("no repeats", swap("16", "16, repeats: 0"), 7, "defaults.repeats", "expected a whole number, at least 1"),
    ("list as defaults", swap("{batch_size: 16}", "[16]"), 7, "defaults", "found a list, expected keys with values"),
    # exclude
    ("mapping as exclude", DEMO + "exclude: {phase: infer}\n", 8, "exclude", "write '- ' before each entry"),
    ("nothing as exclude", DEMO + "exclude:\n", 8, "exclude", "found nothing, expected a list of entries"),
    ("text in exclude", DEMO + "exclude:\n- infer\n", 9, "exclude[0]", "found the text 'infer', expected keys"),
    ("empty entry of exclude", DEMO + "exclude: [{}]\n", 8, "exclude[0]", "found an empty entry"),
    ("misspelt key in exclude", DEMO + "exclude: [{phas: infer}]\n", 8, "exclude[0].phas", "did you mean 'phase'?"),
    ("exclude by no axis", DEMO + "exclude: [{batch_size: 16}]\n", 8, "exclude[0].batch_size", "is not an axis"),
    ("exclude by repeats", DEMO + "exclude: [{repeats: 3}]\n", 8, "exclude[0].repeats", "is not an axis"),
    ("misspelt value in exclude", DEMO + "exclude:\n- phase: infr\n", 9, "exclude[0].phase", "did you mean 'infer'?"),
    (
        "value off the axis",
        DEMO + "exclude:\n- device: gpu\n",
        9,
        "exclude[0].device",
        "which matches no combination; the axis 'device' has cpu",
    ),
    (
        "list in exclude",
        DEMO + "exclude:\n- phase: [infer,\n   infr]\n",
        10,
        "exclude[0].phase[1]",
        "found the text 'infr', expected 'train' or 'infer'; did you mean 'infer'?",
    ),
    (
        "value off the axis in a list",
        DEMO + "exclude:\n- device: [cpu, gpu]\n",
        9,
        "exclude[0].device[1]",
        "which matches no combination; the axis 'device' has cpu",
    ),
    ("empty list in exclude", DEMO + "exclude:\n- phase: []\n", 9, "exclude[0].phase", "found an empty list"),
    (
        "value twice in a list",
        DEMO + "exclude:\n- phase: [train, train]\n",
        9,
        "exclude[0].phase[1]",
        "again, first in line 9; keep one of the two",
    ),
    (
        "list for a key that is no axis",
        DEMO + "include:\n- phase: train\n  seed: [1, 2]\n",
        10,
        "include[0].seed",
        "found a list, expected a whole number, at least 0, below 4294967296; write one value",
    ),
    (
        "two lists that make the same cell",
        DEMO + "include:\n" + OWN_CELL.replace("train", "[train, infer]") + OWN_CELL,
        10,
        "include[1]",
        "'include[0]' in line 9 makes already",
    ),
    ("everything excluded", DEMO + "exclude:\n- device: cpu\n", 9, "exclude", "leave no cell"),
    # include
    ("misspelt key in include", DEMO + "include:\n- mod: graph\n", 9, "include[0].mod", "did you mean 'mode'?"),
    ("misspelt value in include", DEMO + "include:\n- mode: grahp\n", 9, "include[0].mode", "did you mean 'graph'?"),
    ("version in include", DEMO + "include:\n- schema_version: 1\n", 9, "include[0].schema_version", "unknown key"),
    ("empty entry of include", DEMO + "include:\n- {}\n", 9, "include[0]", "found an empty entry"),
    ("text as include", DEMO + "include: all\n", 8, "include", "found the text 'all', expected a list of entries"),
    ("own cell lacks keys", DEMO + "include:\n- device: gpu\n", 9, "include[0]", "lacks 'model', 'framework', 'phase'"),
    ("two equal entries", DEMO + "include:\n" + OWN_CELL * 2, 10, "include[1]", "'include[0]' in line 9 makes already"),
    (
        "two entries that default to the same cell",
        swap("phase: ", "seed: [1]\n  phase: ") + "include:\n" + OWN_CELL + OWN_CELL.replace("}", ", seed: 0}"),
        11,
        "include[1]",
        "makes the cell conv6-pytorch-gpu-train-fp32-eager-b16-",
        "'include[0]' in line 10 makes already",
    ),
    # data
    (
        "missing folder",
        swap("16", "16,\n  data_dir: no/such"),
        8,
        "defaults.data_dir",
        "there is no folder '/",
        "/no/such', expected one with data; a relative path starts at the matrix file's folder",
    ),
    ("number as folder", swap("16", "16, data_dir: 7"), 7, "defaults.data_dir", "a text, or null; put it in quotes"),
    ("empty folder name", swap("16", "16, data_dir: ''"), 7, "defaults.data_dir", "found the text '', expected a text"),
    (
        "folder for a model that reads none",
        swap("[conv6]", "[matmul]") + "exclude: [{phase: train}]\ninclude: [{data_dir: .}]\n",
        9,
        "include[0].data_dir",
        "matmul runs on synthetic data only; leave it out",
    ),
    # combinations
    ("phase that the model has not", swap("[conv6]", "[matmul]"), 6, "axes.phase[0]", "'train' makes no sense for mat"),
    (
        "classes that the model has not",
        swap("[conv6]", "[cyclegan]") + "include: [{num_classes: 10}]\n",
        8,
        "include[0].num_classes",
        "cyclegan has no classes; leave it out or give null",
    ),
    (
        "classes that the model needs",
        swap("16", "16, num_classes: null"),
        7,
        "defaults.num_classes",
        "conv6 is a classifier and needs a number of classes",
    ),
    ("mode of JAX", swap("tensorflow]", "jax]\n  mode: [eager]"), 5, "axes.mode[0]", "'eager' is not a mode of jax"),
    ("key missing everywhere", swap("defaults: {batch_size: 16}\n", ""), 2, "axes", "cells lack 'batch_size'"),
    ("mode from include", DEMO + "include:\n- phase: train\n  mode: graph\n", 10, "include[0].mode", "of pytorch"),
    (
        "size too small for the model",
        swap("16", "16, input_size: 4"),
        7,
        "defaults.input_size",
        "4 does not fit conv6: at least 8 (in the cell model=conv6, framework=pytorch,",
    ),
    (
        "several GPUs on a CPU",
        swap("16", "16, num_gpus: 2"),
        7,
        "defaults.num_gpus",
        "is 1 where device is 'cpu'",
    ),
    ("mode from defaults", swap("16", "16,\n mode: graph"), 8, "defaults.mode", "'graph' is not a mode of pytorch"),
    (
        "mode from an axis",
        swap("phase: ", "mode: [eager,\n  graph]\n  phase: "),
        7,
        "axes.mode[1]",
        "'graph' is not a mode of",
    ),
]


@pytest.mark.parametrize(
    ("text", "line", "key", "words"), [row[1:4] + (row[4:],) for row in FAULTS], ids=[row[0] for row in FAULTS]
)
def test_a_fault_is_one_line_with_file_line_and_key(
    tmp_path: Path, text: str, line: int, key: str, words: tuple[str, ...]
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load_matrix(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: {key}: " if key else f"{path}:{line}: ")
    assert [part for part in words if part not in message] == []
    assert "\n" not in message
    assert "Input should" not in message


def make_sweep(num_seeds: int) -> str:
    return DEMO.replace(
        "defaults: {batch_size: 16}", f"  batch_size: {list(range(1, 101))}\n  seed: {list(range(num_seeds))}"
    )


def test_a_product_above_the_limit_is_refused_before_it_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "_iter_combinations", None)
    num_seeds = MAX_COMBINATIONS // 400 + 1
    with pytest.raises(UserError) as caught:
        expand(make_sweep(num_seeds))
    expected = (
        "demo.yaml:2: axes: 1 x 2 x 1 x 2 x 100 x 251 values make 100,400 combinations, expected at most 100,000;"
    )
    assert str(caught.value).startswith(expected)


def test_a_product_at_the_limit_passes_the_check() -> None:
    definition = read_definition(parse_yaml(make_sweep(MAX_COMBINATIONS // 400), "demo.yaml"))
    assert pick([next(expand_matrix(definition, Path()))], "model", "framework", "batch_size", "seed")[0] == (
        "conv6",
        "pytorch",
        1,
        0,
    )


def test_lists_that_make_too_many_entries_are_refused_with_the_entry() -> None:
    axes = DEMO.replace("defaults: {batch_size: 16}\n", "  batch_size: [1]\n  seed: [0]\n")
    sizes, seeds = list(range(2, 102)), list(range(1000))
    text = axes + f"include:\n- num_steps: 7\n- {{batch_size: {sizes}, seed: {seeds}}}\n"
    with pytest.raises(UserError) as caught:
        expand(text)
    expected = "demo.yaml:11: include[1]: the lists in the entries so far make more than 100,000 entries, the limit;"
    assert str(caught.value).startswith(expected)
    with pytest.raises(UserError, match="lacks 'model', 'framework', 'device', 'phase'; add"):  # one less: not too many
        expand(text.replace("- num_steps: 7\n", ""))


def test_different_cells_whose_ids_collide_are_not_called_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.schema.cell.hash_text", lambda text: "00000000")
    with pytest.raises(
        UserError, match=r"^demo\.yaml:2: axes: gives the id .*-00000000 to two different cells, by chance;"
    ):
        expand(DEMO.replace("axes:\n", "axes:\n  seed: [0, 1]\n"))


@given(st.data())
@settings(max_examples=200)
def test_a_built_in_matrix_with_a_slip_gives_cells_or_one_line(data: st.DataObject) -> None:
    text = (ROOT / "runner" / "matrices" / "smoke.yaml").read_text()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, start + 12))
    slip = data.draw(st.text(st.sampled_from(list("aen019.:-,&*!|>'\"#?[]{}<~ \n\t")), max_size=4))
    outcome = load_or_refuse(expand, text[:start] + slip + text[end:])
    assert isinstance(outcome, list) or outcome.startswith("demo.yaml:")
    assert isinstance(outcome, list) or 1 == len(outcome.splitlines())


# The documentation


def test_the_example_of_the_documentation_makes_the_cells_that_it_says() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    cells = expand(page.partition("```yaml\n")[2].partition("```")[0])
    assert len(cells) == 13
    assert pick(cells, "framework", "mode").count(("tensorflow", "graph")) == 6
    assert pick(cells[-1:], "model", "device", "batch_size") == [("resnet18", "cpu", 64)]


def test_the_documentation_has_every_key_and_limit() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    keys = {*Cell.model_fields, *PlannedCell.model_fields, *MODELS} - {"schema_version", "cell"}
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []
    assert f"{MAX_COMBINATIONS:,} combinations" in page
    assert f"{MAX_NODES:,} values" in page
    assert f"{MAX_DEPTH} levels" in page


def test_the_documentation_has_the_sizes_of_every_model() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    rows = [[column.strip() for column in line.strip("|").split("|")] for line in page.splitlines()]
    documented = {row[0].strip("`"): row[2:5] for row in rows if len(row) == 6}
    for name, spec in MODELS.items():
        smallest = str(spec.min_input_size)
        if spec.input_size_multiple != 1:
            smallest += f", multiples of {spec.input_size_multiple}"
        assert documented[name] == [str(spec.input_size), smallest, str(spec.num_classes or "none")]


def test_the_documentation_has_every_built_in_matrix_and_choice() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    choices = [*MODES, "eager", "graph", "compiled", "fp32", "tf32", "fp16", "bf16", "cpu", "gpu", "train", "infer"]
    assert [name for name in [*list_builtin_matrices(), *choices] if f"`{name}`" not in page] == []

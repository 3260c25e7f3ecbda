"""Errors in the parts of a matrix file: its keys, axes, defaults and entries."""

from pathlib import Path

import pytest

from matrix_files import DEMO, catch_error, swap
from runner.yaml_files.errors import ErrorKind

# What is wrong: the file, the line and the key that the error names, its kind.
ERRORS = {
    "nothing but a marker": ("---\n", 2, "", ErrorKind.WRONG_TYPE),
    "list at the top": ("- name: demo\n", 1, "", ErrorKind.WRONG_TYPE),
    "text at the top": ("\nhello\n", 2, "", ErrorKind.WRONG_TYPE),
    "misspelt key at the top": (DEMO + "exlude: []\n", 8, "exlude", ErrorKind.UNKNOWN_KEY),
    "strange key at the top": (DEMO + "on: push\n", 8, "on", ErrorKind.UNKNOWN_KEY),
    "cell key at the top": (DEMO + "seed: 1\n", 8, "seed", ErrorKind.MISPLACED_KEY),
    "repeats at the top": (DEMO + "repeats: 1\n", 8, "repeats", ErrorKind.MISPLACED_KEY),
    "duplicate key": (DEMO + "name: x\n", 8, "name", ErrorKind.DUPLICATE),
    "no name": (swap("name: demo\n", ""), 1, "name", ErrorKind.MISSING_KEY),
    "no axes": ("name: demo\n", 1, "axes", ErrorKind.MISSING_KEY),
    "capitals in the name": (swap("demo", "Demo"), 1, "name", ErrorKind.WRONG_FORMAT),
    "number as the name": (swap("demo", "7"), 1, "name", ErrorKind.WRONG_TYPE),
    "YAML 1.1 bool as the name": (swap("demo", "on"), 1, "name", ErrorKind.WRONG_TYPE),
    "list as the description": (DEMO + "description: [a]\n", 8, "description", ErrorKind.WRONG_TYPE),
    "half a character as the description": (DEMO + 'description: "\\ud800"\n', 8, "description", ErrorKind.CHARACTER),
    "axes that are a list": ("name: demo\naxes: [model]\n", 2, "axes", ErrorKind.WRONG_TYPE),
    "axes without value": ("name: demo\naxes:\n", 2, "axes", ErrorKind.WRONG_TYPE),
    "axes without axis": ("name: demo\naxes: {}\n", 2, "axes", ErrorKind.EMPTY),
    "empty axis": (swap("[conv6]", "[]"), 3, "axes.model", ErrorKind.EMPTY),
    "scalar axis": (swap("[conv6]", "conv6"), 3, "axes.model", ErrorKind.WRONG_TYPE),
    "axis without value": (swap("[conv6]", ""), 3, "axes.model", ErrorKind.WRONG_TYPE),
    "axis that is a mapping": (swap("[conv6]", "{a: 1}"), 3, "axes.model", ErrorKind.WRONG_TYPE),
    "list in an axis": (swap("[cpu]", "[[cpu]]"), 5, "axes.device[0]", ErrorKind.NOT_A_CHOICE),
    "null in an axis": (swap("[cpu]", "[cpu, ~]"), 5, "axes.device[1]", ErrorKind.NOT_A_CHOICE),
    "misspelt axis": (swap("phase", "fase"), 6, "axes.fase", ErrorKind.UNKNOWN_KEY),
    "repeats as axis": (swap("phase", "repeats"), 6, "axes.repeats", ErrorKind.MISPLACED_KEY),
    "version as axis": (swap("phase", "schema_version"), 6, "axes.schema_version", ErrorKind.UNKNOWN_KEY),
    "misspelt framework": (swap("pytorch", "pytroch"), 4, "axes.framework[0]", ErrorKind.NOT_A_CHOICE),
    "capitals in a value": (swap("cpu", "CPU"), 5, "axes.device[0]", ErrorKind.NOT_A_CHOICE),
    "misspelt model": (swap("conv6", "conf6"), 3, "axes.model[0]", ErrorKind.NOT_A_CHOICE),
    "model far from all": (swap("conv6", "gpt"), 3, "axes.model[0]", ErrorKind.NOT_A_CHOICE),
    "YAML 1.1 bool in an axis": (swap("[cpu]", "[no]"), 5, "axes.device[0]", ErrorKind.NOT_A_CHOICE),
    "duplicate value": (swap("[cpu]", "[cpu, gpu,\n  cpu]"), 6, "axes.device[2]", ErrorKind.DUPLICATE),
    "duplicate number": (
        swap("phase: ", "min_seconds: [1, 1.0]\n  phase: "),
        6,
        "axes.min_seconds[1]",
        ErrorKind.DUPLICATE,
    ),
    "misspelt default": (swap("batch_size", "batchsize"), 7, "defaults.batchsize", ErrorKind.UNKNOWN_KEY),
    "axis as default": (swap("{", "{device: cpu, "), 7, "defaults.device", ErrorKind.MISPLACED_KEY),
    "quoted number": (swap("16", "'16'"), 7, "defaults.batch_size", ErrorKind.WRONG_TYPE),
    "exponent without point": (swap("16", "1e3"), 7, "defaults.batch_size", ErrorKind.WRONG_TYPE),
    "fraction": (swap("16", "16.0"), 7, "defaults.batch_size", ErrorKind.WRONG_TYPE),
    "bool where a number belongs": (swap("16", "true"), 7, "defaults.batch_size", ErrorKind.WRONG_TYPE),
    "YAML 1.1 bool as number": (swap("16", "yes"), 7, "defaults.batch_size", ErrorKind.WRONG_TYPE),
    "nothing where a number belongs": (swap("16", ""), 7, "defaults.batch_size", ErrorKind.WRONG_TYPE),
    "text where a number belongs": (swap("16", "many"), 7, "defaults.batch_size", ErrorKind.WRONG_TYPE),
    "list where a number belongs": (swap("16", "[16]"), 7, "defaults.batch_size", ErrorKind.WRONG_TYPE),
    "mapping as a number": (swap("16", "{a: 1}"), 7, "defaults.batch_size", ErrorKind.WRONG_TYPE),
    "zero": (swap("16", "0"), 7, "defaults.batch_size", ErrorKind.OUT_OF_RANGE),
    "negative": (swap("16", "-4"), 7, "defaults.batch_size", ErrorKind.OUT_OF_RANGE),
    "octal": (swap("16", "016"), 7, "defaults.batch_size", ErrorKind.NUMBER),
    "size too small": (swap("16", "16, input_size: 1"), 7, "defaults.input_size", ErrorKind.OUT_OF_RANGE),
    "zero seconds": (swap("16", "16, timeout_seconds: 0"), 7, "defaults.timeout_seconds", ErrorKind.OUT_OF_RANGE),
    "infinity": (swap("16", "16, timeout_seconds: .inf"), 7, "defaults.timeout_seconds", ErrorKind.OUT_OF_RANGE),
    "not a number": (swap("16", "16, min_seconds: .nan"), 7, "defaults.min_seconds", ErrorKind.OUT_OF_RANGE),
    "no repeats": (swap("16", "16, repeats: 0"), 7, "defaults.repeats", ErrorKind.OUT_OF_RANGE),
    "list as defaults": (swap("{batch_size: 16}", "[16]"), 7, "defaults", ErrorKind.WRONG_TYPE),
    "mapping as exclude": (DEMO + "exclude: {phase: infer}\n", 8, "exclude", ErrorKind.WRONG_TYPE),
    "nothing as exclude": (DEMO + "exclude:\n", 8, "exclude", ErrorKind.WRONG_TYPE),
    "text in exclude": (DEMO + "exclude:\n- infer\n", 9, "exclude[0]", ErrorKind.WRONG_TYPE),
    "empty entry of exclude": (DEMO + "exclude: [{}]\n", 8, "exclude[0]", ErrorKind.EMPTY),
    "misspelt key in exclude": (DEMO + "exclude: [{phas: infer}]\n", 8, "exclude[0].phas", ErrorKind.UNKNOWN_KEY),
    "exclude by no axis": (DEMO + "exclude: [{batch_size: 16}]\n", 8, "exclude[0].batch_size", ErrorKind.MISPLACED_KEY),
    "exclude by repeats": (DEMO + "exclude: [{repeats: 3}]\n", 8, "exclude[0].repeats", ErrorKind.MISPLACED_KEY),
    "misspelt value in exclude": (DEMO + "exclude:\n- phase: infr\n", 9, "exclude[0].phase", ErrorKind.NOT_A_CHOICE),
    "value off the axis": (DEMO + "exclude:\n- device: gpu\n", 9, "exclude[0].device", ErrorKind.CONFLICT),
    "list in exclude": (
        DEMO + "exclude:\n- phase: [infer,\n   infr]\n",
        10,
        "exclude[0].phase[1]",
        ErrorKind.NOT_A_CHOICE,
    ),
    "value off the axis in a list": (
        DEMO + "exclude:\n- device: [cpu, gpu]\n",
        9,
        "exclude[0].device[1]",
        ErrorKind.CONFLICT,
    ),
    "empty list in exclude": (DEMO + "exclude:\n- phase: []\n", 9, "exclude[0].phase", ErrorKind.EMPTY),
    "value twice in a list": (
        DEMO + "exclude:\n- phase: [train, train]\n",
        9,
        "exclude[0].phase[1]",
        ErrorKind.DUPLICATE,
    ),
    "list for a key that is no axis": (
        DEMO + "include:\n- phase: train\n  seed: [1, 2]\n",
        10,
        "include[0].seed",
        ErrorKind.WRONG_TYPE,
    ),
    "misspelt key in include": (DEMO + "include:\n- mod: graph\n", 9, "include[0].mod", ErrorKind.UNKNOWN_KEY),
    "misspelt value in include": (DEMO + "include:\n- mode: grahp\n", 9, "include[0].mode", ErrorKind.NOT_A_CHOICE),
    "version in include": (
        DEMO + "include:\n- schema_version: 1\n",
        9,
        "include[0].schema_version",
        ErrorKind.UNKNOWN_KEY,
    ),
    "empty entry of include": (DEMO + "include:\n- {}\n", 9, "include[0]", ErrorKind.EMPTY),
    "text as include": (DEMO + "include: all\n", 8, "include", ErrorKind.WRONG_TYPE),
}


@pytest.mark.parametrize(("text", "line", "key", "kind"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_file_line_and_key(tmp_path: Path, text: str, line: int, key: str, kind: ErrorKind) -> None:
    error = catch_error(tmp_path, text)
    assert (error.file, error.line, error.key, error.kind) == (str(tmp_path / "demo.yaml"), line, key, kind)
    assert "\n" not in str(error)
    assert "Input should" not in str(error)

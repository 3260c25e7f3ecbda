"""Tables that users write: both formats, and the file, line, row and column of every error."""

from pathlib import Path

import pytest

from runner.audit_tables import load_table
from runner.yaml_input import YamlError

TOP = "title: Mine\nsource: me\n"
DEVICE = "devices: [{name: Abacus, source: counted, tflops: {fp32: 1}}]\n"
ROW = "{device: T4, model: resnet50, phase: infer, precision: fp32, batch_size: 64, milliseconds: 152.73}"
HEADER = "device,model,phase,precision,batch_size,milliseconds\n"
LINE = "T4,resnet50,infer,fp32,64,152.73\n"


def catch_error(tmp_path: Path, name: str, text: str) -> YamlError:
    """Return the error in a table; its file is named as the user named it."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(YamlError) as caught:
        load_table(str(path))
    assert caught.value.file == str(path)
    assert str(caught.value).startswith(str(path))
    return caught.value


def test_the_same_table_reads_alike_in_both_formats(tmp_path: Path) -> None:
    (tmp_path / "table.yaml").write_text(f"{TOP}rows:\n  - {ROW}\n")
    (tmp_path / "table.csv").write_text(f"\ufeff{HEADER}\n{LINE}")
    in_yaml, in_csv = (load_table(str(tmp_path / name)) for name in ("table.yaml", "table.csv"))
    assert in_yaml.rows == in_csv.rows
    assert (in_csv.title, in_csv.source) == ("table", "table.csv")


def test_a_device_of_the_table_or_of_the_row_serves(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(f"{TOP}{DEVICE}rows: [{ROW.replace('T4', 'abacus')}]")
    assert load_table(str(path)).rows[0].device == "abacus"
    csv = tmp_path / "table.csv"
    csv.write_text(f"peak_tflops,peak_source,{HEADER}1.5,counted,{LINE.replace('T4', 'Slide rule')}")
    assert load_table(str(csv)).rows[0].peak_tflops == 1.5


# What stands in a row of YAML instead of ROW; the column that the error names, and words of it.
ROW_ERRORS = [
    (ROW.replace("fp32", "fp23"), "precision", "did you mean 'fp32'?"),
    (ROW.replace("fp32", "16"), "precision", "expected 'fp32', "),
    (ROW.replace("152.73", "fast"), "milliseconds", "expected a valid number"),
    (ROW.replace("152.73", "0"), "milliseconds", "greater than or equal to 0.000001"),
    (ROW.replace("batch_size", "batch"), "batch", "did you mean 'batch_size'?"),
    (ROW.replace("device: T4, ", ""), "device", "docs/audit.md says what it takes"),
    (ROW.replace("T4", "Tesla T5"), "device", "did you mean 'Tesla T4'?"),
    (ROW.replace("resnet50", "alexnet"), "model", "of another give flops_per_sample"),
    (ROW.replace("model: resnet50, ", ""), "model", "flops_per_sample of every reading"),
    (
        ROW.replace("}", ", input_size: 2}").replace("resnet50", "vgg16"),
        "input_size",
        "at least 32",
    ),
    (ROW.replace("infer", "train").replace("resnet50", "matmul"), "phase", "makes no sense"),
    (
        ROW.replace("}", ", seconds: 1}"),
        "seconds",
        "found milliseconds and seconds, expected exactly",
    ),
    (ROW.replace(", milliseconds: 152.73", ""), "milliseconds", "found none of them"),
    (ROW.replace("batch_size: 64, ", ""), "batch_size", "are of a step"),
    (ROW.replace("}", ", peak_tflops: 1}"), "peak_source", "belong together"),
    (
        ROW.replace("}", ", readings: [{input_size: 32}, {input_sise: 1}]}"),
        "readings[1].input_sise",
        "did you mean 'input_size'?",
    ),
]


@pytest.mark.parametrize(("row", "column", "words"), ROW_ERRORS, ids=lambda value: str(value)[:60])
def test_an_error_in_a_row_names_file_line_row_and_column(tmp_path: Path, row: str, column: str, words: str) -> None:
    error = catch_error(tmp_path, "table.yaml", f"{TOP}rows:\n  - {ROW}\n  - {row}\n")
    assert (error.line, error.key) == (5, f"rows[1].{column}")
    assert words in str(error)


# The same in CSV: the line that stands below a good one.
CSV_ERRORS = [
    (LINE.replace("fp32", "fp23"), "rows[1].precision", "did you mean 'fp32'?"),
    (LINE.replace("152.73", "1e999"), "rows[1].milliseconds", "a finite number"),
    (LINE.replace("152.73", ""), "rows[1].milliseconds", "found none of them"),
    (LINE.replace("T4", "Tesla T5"), "rows[1].device", "did you mean 'Tesla T4'?"),
    (LINE.replace("152.73", "1,152.73"), "rows[1]", "found 7 cells, expected 6"),
]


@pytest.mark.parametrize(("line", "key", "words"), CSV_ERRORS, ids=lambda value: str(value)[:60])
def test_an_error_in_a_line_of_csv_is_named_alike(tmp_path: Path, line: str, key: str, words: str) -> None:
    error = catch_error(tmp_path, "table.csv", f"{HEADER}{LINE}\n{line}")
    assert (error.line, error.key) == (4, key)
    assert words in str(error)


FILE_ERRORS = [
    ("table.csv", "", 1),
    ("table.csv", HEADER, 1),
    ("table.csv", f"batch,{HEADER}{LINE}", 1),
    ("table.csv", f"device,{HEADER}{LINE}", 1),
    ("table.csv", f'{HEADER}"T4,', 2),
    ("table.yaml", "", 1),
    ("table.yaml", f"{TOP}rows: []", 3),
    ("table.yaml", f"{TOP}defaults: 3\nrows: [{ROW}]", 3),
    ("table.yaml", f"{TOP}row: 3\nrows: [{ROW}]", 3),
    ("table.yaml", f"{TOP}devices: [{{name: a, source: b}}]\nrows: [{ROW}]", 3),
    (
        "table.yaml",
        f"{TOP}devices: [{{name: a, source: b, tflops: {{fp64: 1}}}}]\nrows: [{ROW}]",
        3,
    ),
]


@pytest.mark.parametrize(("name", "text", "line"), FILE_ERRORS)
def test_an_error_outside_of_rows_names_file_and_line(tmp_path: Path, name: str, text: str, line: int) -> None:
    error = catch_error(tmp_path, name, text)
    assert error.line == line


@pytest.mark.parametrize("name", ["most_flops_per_sample", "winograd_share"])
def test_what_says_more_of_stated_flops_is_not_ignored_without_them(name: str, tmp_path: Path) -> None:
    row = ROW.replace("}", f", readings: [{{{name}: 1}}]}}")
    error = catch_error(tmp_path, "table.yaml", f"{TOP}rows:\n  - {row}\n")
    assert f"{name}" in str(error)
    assert "is given without flops_per_sample" in error.message

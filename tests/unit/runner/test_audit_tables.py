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


def in_yaml(row: str) -> tuple[str, str]:
    """Return a table with this row below a good one, in line 5."""
    return "table.yaml", f"{TOP}rows:\n  - {ROW}\n  - {row}\n"


def in_csv(line: str) -> tuple[str, str]:
    """Return a table with this line below a good one, the fourth."""
    return "table.csv", f"{HEADER}{LINE}\n{line}"


# The file, the line and the key that the error names, and words of it.
ERRORS = [
    (in_yaml(ROW.replace("fp32", "fp23")), "5: rows[1].precision", "did you mean 'fp32'?"),
    (in_yaml(ROW.replace("152.73", "0")), "5: rows[1].milliseconds", "greater than or equal to 0.000001"),
    (in_yaml(ROW.replace("batch_size", "batch")), "5: rows[1].batch", "did you mean 'batch_size'?"),
    (in_yaml(ROW.replace("device: T4, ", "")), "5: rows[1].device", "docs/audit.md says what it takes"),
    (in_yaml(ROW.replace("T4", "Tesla T5")), "5: rows[1].device", "did you mean 'Tesla T4'?"),
    (in_yaml(ROW.replace("resnet50", "alexnet")), "5: rows[1].model", "of another give flops_per_sample"),
    (in_yaml(ROW.replace("model: resnet50, ", "")), "5: rows[1].model", "flops_per_sample of every reading"),
    (
        in_yaml(ROW.replace("}", ", input_size: 2}").replace("resnet50", "vgg16")),
        "5: rows[1].input_size",
        "at least 32",
    ),
    (in_yaml(ROW.replace("infer", "train").replace("resnet50", "matmul")), "5: rows[1].phase", "makes no sense"),
    (in_yaml(ROW.replace("}", ", seconds: 1}")), "5: rows[1].seconds", "found milliseconds and seconds, expected"),
    (in_yaml(ROW.replace("batch_size: 64, ", "")), "5: rows[1].batch_size", "are of a step"),
    (in_yaml(ROW.replace("}", ", peak_tflops: 1}")), "5: rows[1].peak_source", "belong together"),
    (in_yaml(ROW.replace("}", ", readings: [{input_sise: 1}]}")), "5: rows[1].readings[0].input_sise", "'input_size'?"),
    (in_csv(LINE.replace("fp32", "fp23")), "4: rows[1].precision", "did you mean 'fp32'?"),
    (in_csv(LINE.replace("152.73", "1e999")), "4: rows[1].milliseconds", "a finite number"),
    (in_csv(LINE.replace("152.73", "")), "4: rows[1].milliseconds", "found none of them"),
    (in_csv(LINE.replace("152.73", "1,152.73")), "4: rows[1]", "found 7 cells, expected 6"),
    (("table.csv", HEADER), "1", "the table has no rows"),
    (("table.csv", f"batch,{HEADER}{LINE}"), "1: column 'batch'", "unknown column; did you mean 'batch_size'?"),
    (("table.csv", f"device,{HEADER}{LINE}"), "1: column device", "stands twice"),
    (("table.csv", f'{HEADER}"T4,'), "2", "is not CSV"),
    (("table.yaml", f"{TOP}defaults: 3\nrows: [{ROW}]"), "3: defaults", "columns of the rows with their values"),
    (("table.yaml", f"{TOP}devices: [{{name: a, source: b}}]\nrows: [{ROW}]"), "3: devices[0]", ""),
]


@pytest.mark.parametrize(("table", "place", "words"), ERRORS, ids=lambda value: str(value)[-60:])
def test_an_error_names_file_line_and_key(tmp_path: Path, table: tuple[str, str], place: str, words: str) -> None:
    error = catch_error(tmp_path, *table)
    assert str(error).startswith(f"{tmp_path}/{table[0]}:{place}")
    assert words in error.message


@pytest.mark.parametrize("name", ["most_flops_per_sample", "winograd_share"])
def test_what_says_more_of_stated_flops_is_not_ignored_without_them(name: str, tmp_path: Path) -> None:
    row = ROW.replace("}", f", readings: [{{{name}: 1}}]}}")
    error = catch_error(tmp_path, "table.yaml", f"{TOP}rows:\n  - {row}\n")
    assert f"{name}" in str(error)
    assert "is given without flops_per_sample" in error.message

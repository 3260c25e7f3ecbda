"""Tables and scenarios as users write them: what is read, and the file, line and key of every error."""

from collections.abc import Callable
from pathlib import Path

import pytest

from access_scenarios import make_group
from bench.errors import UserError
from runner.analysis_inputs import SHIPPED_SCENARIOS, load_scenario, load_table

TOP = "title: Mine\nsource: me\n"
DEVICE = "devices: [{name: Abacus, source: counted, tflops: {fp32: 1}}]\n"
ROW = "{device: T4, model: resnet50, phase: infer, precision: fp32, batch_size: 64, milliseconds: 152.73}"
HEADER = "device,model,phase,precision,batch_size,milliseconds\n"
LINE = "T4,resnet50,infer,fp32,64,152.73\n"


def check_error(path: Path, text: str, load: Callable[[str], object], place: str, words: str = "") -> None:
    """Check that an error names the file as the user named it, then the place."""
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load(str(path))
    assert str(caught.value).startswith(f"{path}:{place}: ")
    assert words in str(caught.value)


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
    (in_yaml(ROW.replace("}", ", input_size: 2}").replace("resnet50", "vgg16")), "5: rows[1].input_size", "least 32"),
    (in_yaml(ROW.replace("infer", "train").replace("resnet50", "matmul")), "5: rows[1].phase", "makes no sense"),
    (in_yaml(ROW.replace("}", ", seconds: 1}")), "5: rows[1].seconds", "found milliseconds and seconds, expected"),
    (in_yaml(ROW.replace("batch_size: 64, ", "")), "5: rows[1].batch_size", "are of a step"),
    (in_yaml(ROW.replace("}", ", peak_tflops: 1}")), "5: rows[1].peak_source", "belong together"),
    (in_yaml(ROW.replace("}", ", readings: [{input_sise: 1}]}")), "5: rows[1].readings[0].input_sise", "'input_size'?"),
    *(
        (
            in_yaml(ROW.replace("}", f", readings: [{{{name}: 1}}]}}")),
            f"5: rows[1].readings[0].{name}",
            "without flops_",
        )
        for name in ("most_flops_per_sample", "winograd_share")
    ),
    (in_csv(LINE.replace("fp32", "fp23")), "4: rows[1].precision", "did you mean 'fp32'?"),
    (in_csv(LINE.replace("152.73", "1e999")), "4: rows[1].milliseconds", "a finite number"),
    (in_csv(LINE.replace("152.73", "")), "4: rows[1].milliseconds", "found none of them"),
    (in_csv(LINE.replace("152.73", "1,152.73")), "4", "found 7 cells, expected 6"),
    (("table.csv", HEADER), "1", "the table has no rows"),
    (("table.csv", f"batch,{HEADER}64,{LINE}"), "2: rows[0].batch", "did you mean 'batch_size'?"),
    (("table.csv", f"device,{HEADER}T4,{LINE}"), "1", "has several columns 'device'"),
    (("table.csv", f'{HEADER}"T4,'), "2", "is not a CSV file"),
    (("table.yaml", f"{TOP}defaults: 3\nrows: [{ROW}]"), "3: defaults", "columns of the rows with their values"),
    (("table.yaml", f"{TOP}devices: [{{name: a, source: b}}]\nrows: [{ROW}]"), "3: devices[0].tflops", "is missing"),
]


@pytest.mark.parametrize(("table", "place", "words"), ERRORS, ids=lambda value: str(value)[-60:])
def test_an_error_in_a_table_names_file_line_and_key(
    tmp_path: Path, table: tuple[str, str], place: str, words: str
) -> None:
    check_error(tmp_path / table[0], table[1], load_table, place, words)


SCENARIO = """\
question: Buy or rent?
job_hours_on: T4
kinds:
  T4: {samples_per_second: 250}
users:
  all: {number: 3, job_hours: [2], jobs_per_day: 1}
alternatives:
  rent: {kind: T4, gpus: 2, rent: {price_per_hour: 0.5}}
"""


def test_a_scenario_of_eight_lines_is_enough(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(SCENARIO)
    scenario = load_scenario(str(tmp_path / "ours.yaml"))
    assert scenario.users["all"].job_hours == (2.0,)
    assert scenario.policies == ("exclusive", "time-slicing", "fair-share")
    assert (scenario.weeks, scenario.currency) == (30, "USD")


USER, RENT, BUY = "jobs_per_day: 1", "{price_per_hour: 0.5}", "rent: {price_per_hour: 0.5}"
KIND = "{samples_per_second: 250}"
SCENARIO_ERRORS = [
    ("job_hours: [2]", "job_hours: [0]", 6, "users.all.job_hours[0]"),
    (USER, f"{USER}, think_hours: 1", 6, "users.all.jobs_per_day"),
    (f", {USER}", "", 6, "users.all.jobs_per_day"),
    (USER, f"{USER}, working_hours: [18, 9]", 6, "users.all.working_hours"),
    (USER, f"{USER}, working_days: [Monday]", 6, "users.all.working_days[0]"),
    (USER, f"{USER}, quota: 1", 5, "users"),
    ("job_hours_on: T4", "job_hours_on: V100", 2, "job_hours_on"),
    ("kind: T4", "kind: T5", 8, "alternatives.rent.kind"),
    (RENT, "{price_per_hour: -1}", 8, "alternatives.rent.rent.price_per_hour"),
    (RENT, "{interruptions_per_hour: 0}", 8, "alternatives.rent.rent.interruptions_per_hour"),
    (RENT, "{machine: a}", 8, "alternatives.rent.rent"),
    (RENT, "{machine: n1-standard-4, region: nowhere}", 8, "alternatives.rent.rent"),
    (f"{RENT}}}\n", "{}}\ncurrency: EUR\n", 9, "currency"),
    (f", {BUY}", "", 8, "alternatives.rent.buy"),
    (BUY, "buy: {price: 9, lifetime_years: 1, watts: 9}", 8, "alternatives.rent.buy.electricity_per_kwh"),
    (KIND, "{samples_per_second: 250, slowdowns: {mig: {2: 2}}}", 4, "kinds.T4.slowdowns.mig"),
    (KIND, "{samples_per_second: 250, slowdowns: {mps: {1: 2}}}", 4, "kinds.T4.slowdowns.mps.1"),
    (KIND, "{source: a blog}", 4, "kinds.T4.samples_per_second"),
    ("question: Buy or rent?\n", "question: '?'\npolicies: [exclusive, mps]\n", 2, "policies"),
]


@pytest.mark.parametrize(("old", "new", "line", "key"), SCENARIO_ERRORS)
def test_an_error_in_a_scenario_names_line_and_key(tmp_path: Path, old: str, new: str, line: int, key: str) -> None:
    assert old in SCENARIO
    check_error(tmp_path / "ours.yaml", SCENARIO.replace(old, new), load_scenario, f"{line}: {key}")


def test_a_scenario_with_too_many_jobs_is_refused(tmp_path: Path) -> None:
    text = SCENARIO.replace("jobs_per_day: 1", "jobs_per_day: 100000")
    words = "jobs would be simulated, more than 2,000,000"
    check_error(tmp_path / "ours.yaml", text, load_scenario, "1: weeks", words)


def test_the_number_of_jobs_is_estimated_by_hand() -> None:
    group = make_group(number=3, job_hours=(2.0,), jobs_per_day=2.0, working_days=("mon", "tue"))
    waiting = make_group(job_hours=(2.0,), think_hours=4.0, working_hours=(8.0, 16.0))
    assert (group.jobs_per_week, waiting.jobs_per_week) == (3 * 2 * 2, 7 * 8 / 4)


@pytest.mark.parametrize("name", SHIPPED_SCENARIOS)
def test_every_shipped_scenario_has_twenty_lines_and_all_its_prices(name: str) -> None:
    rented = [one.rent for one in load_scenario(name).alternatives.values() if one.rent is not None]
    assert all(rent.price_per_hour and "https://" in rent.source for rent in rented)
    assert len(SHIPPED_SCENARIOS[name].read_text().splitlines()) <= 20

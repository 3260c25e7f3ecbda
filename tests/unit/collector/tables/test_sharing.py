"""The tables of shared devices."""

from bench.schema import Result
from collector.analysis import Analysis, analyze_run
from collector.tables.cells import make_training_table
from collector.tables.comparisons import (
    make_shared_device_table,
    make_tenant_latency_table,
    make_tenant_speed_table,
)
from collector.tables.table import Table
from measured_runs import Collect, make_repeats
from shared_runs import make_gpu_cell, make_tenants_result

ALONE, TWO, FOUR = make_gpu_cell(), make_gpu_cell(tenants=2), make_gpu_cell(tenants=4)
NAME = "conv6 train, GPU, batch 64, 32 px, {} tenants by time-slicing, PyTorch eager"


def share(*results: Result) -> list[Result]:
    """Return results of two tenants, twice 2.5 times slower than alone, beside `results`."""
    shared = [make_tenants_result(TWO, [0.25] * 4, [0.25] * 4, watts=64.0, repeat=repeat) for repeat in (1, 2)]
    return [*make_repeats(ALONE, 0.1, 0.1), *shared, *results]


def find_row(table: Table, name: str) -> dict[str, str]:
    """Return the first row with this name by the headings, of which the first one of each counts."""
    row = next(found for found in table.format_rows() if found[0] == name)
    return dict(reversed(list(zip(table.headings, row, strict=True))))


def test_each_tenant_stands_beside_the_same_work_alone(collect: Collect) -> None:
    row = find_row(make_tenant_speed_table(analyze_run(collect(*share()))), NAME.format(2))
    assert row["each tenant, samples/s"] == "256.0"
    assert row["alone, samples/s"] == "640.0"
    assert (row["slowdown"], row["slowest tenant's"], row["repeats ok"]) == ("2.50", "2.50", "2 of 3")
    assert "tenants with" not in row
    assert "not compared, because" not in row


def test_percentiles_without_steps_enough_are_no_columns(collect: Collect) -> None:
    shared = [make_tenants_result(TWO, [1.0] * 6, [1.0] * 6, repeat=repeat) for repeat in (1, 2)]  # 12 steps
    table = make_tenant_latency_table(analyze_run(collect(*make_repeats(ALONE, 0.4, 0.4), *shared)))
    row = find_row(table, NAME.format(2))
    assert (row["p50, ms"], row["p50 over alone"]) == ("1,000", "2.50")
    assert not [heading for heading in row if heading.startswith(("p95", "p99"))]


def test_all_tenants_stand_beside_one_alone(collect: Collect) -> None:
    table = make_shared_device_table(analyze_run(collect(*share())))
    row = find_row(table, NAME.format(2))
    assert (row["together, over one alone"], row["verdict"]) == ("0.800", "less than one alone")
    assert (row["Jain's index"], row["its lowest"]) == ("1.00", "1.00")
    assert row["energy per sample, J"] == "0.125"  # 64 W over 512 samples a second
    assert (row["memory, fullest tenant, GiB"], row["device, peak in use, GiB"]) == ("1.00", "9.00")
    assert table.remark.endswith("1 ratio was tested: it differs from 1.")


def test_step_times_say_whose_they_are(collect: Collect) -> None:
    def read_remark(analysis: Analysis) -> str:
        table = make_training_table(analysis)
        return table.remark

    remark = "Of a cell with tenants, the steps are those of its first one while the others ran: see Sharing."
    assert read_remark(analyze_run(collect(*share()))) == remark
    assert read_remark(analyze_run(collect(*make_repeats(ALONE, 0.1), cells=[ALONE]))) == ""

"""The tables of shared devices."""

from collector.analysis import analyze_run
from collector.tables.cells import make_training_table
from collector.tables.comparisons import make_shared_device_table, make_tenant_latency_table, make_tenant_speed_table
from collector.tables.table import Table
from measured_runs import Collect, make_repeats
from shared_runs import make_gpu_cell, make_tenants_result

ALONE, TWO = make_gpu_cell(), make_gpu_cell(tenants=2)
NAME = "conv6 train, GPU, batch 64, 32 px, 2 tenants by time-slicing, PyTorch eager"


def find_row(table: Table) -> dict[str, str]:
    """Return the row of two tenants by the headings, of which the first one of each counts."""
    row = next(found for found in table.format_rows() if found[0] == NAME)
    return dict(reversed(list(zip(table.headings, row, strict=True))))


def test_tenants_stand_beside_the_same_work_alone(collect: Collect) -> None:
    # Twice 2.5 times slower than alone; fewer than 100 steps in each repeat, too few for p99.
    shared = [make_tenants_result(TWO, [0.25] * 4, [0.25] * 4, watts=64.0, repeat=repeat) for repeat in (1, 2)]
    analysis = analyze_run(collect(*make_repeats(ALONE, 0.1, 0.1), *shared))
    speed, latency = find_row(make_tenant_speed_table(analysis)), find_row(make_tenant_latency_table(analysis))
    assert (speed["each tenant, samples/s"], speed["alone, samples/s"]) == ("256.0", "640.0")
    assert (speed["slowdown"], speed["slowest tenant's"], speed["repeats ok"]) == ("2.50", "2.50", "2 of 3")
    assert "tenants with" not in speed
    assert "not compared, because" not in speed
    assert (latency["p50, ms"], latency["p50 over alone"]) == ("250", "2.50")
    assert not [heading for heading in latency if heading.startswith("p99")]
    table = make_shared_device_table(analysis)
    row = find_row(table)
    assert (row["together, over one alone"], row["verdict"]) == ("0.800", "less than one alone")
    assert (row["Jain's index"], row["its lowest"]) == ("1.00", "1.00")
    assert row["energy per sample, J"] == "0.125"  # 64 W over 512 samples a second
    assert (row["memory, fullest tenant, GiB"], row["device, peak in use, GiB"]) == ("1.00", "9.00")
    assert table.remark.endswith("1 ratio was tested: it differs from 1.")
    remark = "Of a cell with tenants, the steps are those of its first one while the others ran: see Sharing."
    assert make_training_table(analysis).remark == remark

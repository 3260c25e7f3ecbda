"""The section of the report on costs."""

from pathlib import Path

import pytest

from collector.analysis import analyze_run
from collector.report.html import render_report
from collector.report.sections import build_sections
from factories import RUN_ID, make_cell
from measured_runs import Collect, make_repeats
from price_tables import make_price, make_price_table

PRICES = make_price_table(make_price("plain", 0.001, cpu="Xeon 2.20GHz"))


def test_a_run_with_a_price_table_has_its_costs(collect: Collect) -> None:
    collection = collect(*make_repeats(make_cell(), 0.064))
    (view,) = [
        view for view in build_sections(analyze_run(collection, prices=PRICES)) if view.section.anchor == "costs"
    ]
    table = view.tables[0].table
    # 1,000 samples in 15.625 steps of 0.064 s are a second; two vCPUs take 8 W, and a joule emits 1.25 x 0.0001 g.
    assert table.headings[:4] == ["cell", "cheapest machine", "per hour, EUR", "cost, EUR"]
    ((cell, machine, hourly, cost, _, energy, *_, source, co2),) = table.format_rows()
    assert (cell, machine) == ("conv6 train, CPU, batch 64, 32 px, PyTorch eager", "X north plain")
    assert (hourly, cost, energy, source, co2) == ("3.60", "0.00100", "8.00", "vCPUs, estimated", "0.00100")
    assert "X north plain: 3.6 EUR per hour, 2026-01-01, our books" in view.content["basis"]


def test_cells_without_a_price_have_their_energy_and_what_gives_a_price(collect: Collect) -> None:
    prices = make_price_table(make_price("other", 0.001, cpu="another CPU"))
    collection = collect(*make_repeats(make_cell(), 0.064))
    for table, captions in ((prices, ["Energy of 1,000 samples"]), (prices.model_copy(update={"power": ()}), [])):
        (view,) = [
            view for view in build_sections(analyze_run(collection, prices=table)) if view.section.anchor == "costs"
        ]
        assert [one.table.caption for one in view.tables] == captions
        assert not any("EUR" in heading or "CO2" in heading for one in view.tables for heading in one.table.headings)
        assert view.content["answers"][-1] == (
            f"`benchmatrix cost {RUN_ID} --machine cpu=MACHINE` prices them as on that machine, with their CO2."
        )


def test_a_large_run_has_the_costs_of_its_first_cells(collect: Collect, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("collector.analysis", "collector.report.section_contents"):
        monkeypatch.setattr(f"{module}.MAX_PRICED_CELLS", 2)
    cells = [make_cell(batch_size=size) for size in (1, 2, 4)]
    collection = collect(*(result for cell in cells for result in make_repeats(cell, 0.1)))
    (view,) = [
        view for view in build_sections(analyze_run(collection, prices=PRICES)) if view.section.anchor == "costs"
    ]
    table = view.tables[0].table
    assert (len(table.rows), table.remark) == (2, "The first 2 of 3 cells; `benchmatrix cost` has all.")


def test_a_run_without_a_price_table_has_no_such_section(collect: Collect, tmp_path: Path) -> None:
    collection = collect(*make_repeats(make_cell(), 0.1))
    assert "costs" not in [view.section.anchor for view in build_sections(analyze_run(collection))]
    path = tmp_path / "report.html"
    render_report(collection, forecast=None, path=path, prices=PRICES)
    html = path.read_text()
    assert 'id="costs"' in html
    assert "What this rests on" in html

"""What the report says of a run."""

import re
from collections.abc import Callable
from pathlib import Path

from collector.forecast.fit import fit_forecast
from collector.forecast.gpu_table import load_gpu_table, make_gpu_series
from collector.report.table_html import MAX_STATIC_ROWS, read_tables
from factories import (
    RUN_ID,
    make_cell,
    make_environment,
    make_failed_result,
    make_result,
)
from report_pages import Page, read_words
from shared_runs import make_tenants_result

Render = Callable[..., Path]


def test_the_sections_stand_in_order_of_use(full_report: Path) -> None:
    assert Page(full_report.read_text()).headings == [
        "Answers",
        "Can this be trusted?",
        "Overview",
        "What was planned",
        "What failed or was left out",
        "Plots",
        "Step times",
        "Comparisons",
        "Memory and durations",
        "Load, clocks and energy",
        "Roofline",
        "Environments",
        "How it was measured",
        "Published claims",
        "Forecast of GPU memory",
    ]


def test_the_first_sentence_counts_what_ended_how(full_report: Path) -> None:
    assert "21 of 24 planned repeats ended ok, in 8 cells. The others: 1 failed, 1 oom, 1 missing." in read_words(
        full_report
    )


def test_failures_left_out_cells_and_skipped_documents_show_their_reasons(full_report: Path) -> None:
    words = read_words(full_report)
    for text in ("ValueError: wrong shape", "line 31", "3 GiB asked for", "no result was found"):
        assert text in words
    assert "no NVIDIA GPU is visible" in words
    assert f"runs/{RUN_ID}/results/notes.txt" in words
    assert "the key is not one of a result" in words


def test_repeats_of_a_cell_that_ended_alike_share_a_line(render: Render) -> None:
    failed = [make_failed_result(repeat=number, message="too long", attempt=f"a{number}") for number in (2, 3)]
    words = read_words(render(make_result(), *failed, repeats=6))
    titles = re.findall(r"repeats? [\d, and]+</strong>", words)
    assert [title.removesuffix("</strong>") for title in titles] == ["repeats 4, 5 and 6", "repeats 2 and 3"]
    assert words.count("no result was found") == 1


def test_a_run_that_is_named_as_its_matrix_has_its_name_once(render: Render) -> None:
    once = render(make_result(), matrix=RUN_ID).read_text()
    assert f"<h1>{RUN_ID}</h1>" in once
    assert f"<title>{RUN_ID}: benchmatrix report</title>" in once


def test_every_question_that_the_data_answer_has_a_plot(full_report: Path) -> None:
    words = read_words(full_report)
    for question in (
        "How fast is each cell?",
        "Which framework is faster?",
        "What does the GPU gain?",
        "How near does it come to what the device can do?",
        "Where does the time of a repeat go?",
        "Is the measurement steady?",
    ):
        assert f"<h3>{question}</h3>" in words


def test_what_is_not_known_is_counted_before_the_tables(full_report: Path) -> None:
    words = read_words(full_report)
    for text in (
        "3 planned repeats did not end ok (1 failed, 1 oom, 1 missing).",
        "1 repeat ended ok and does not count, as its conditions were at fault (1 throttled).",
        "1 cell of the matrix was left out: it cannot run here.",
        "1 document in the store did not count.",
    ):
        assert text in words


def test_what_is_not_there_has_no_section_and_no_plot(render: Render) -> None:
    page = render(*(make_result(repeat=repeat) for repeat in (1, 2, 3)))
    assert Page(page.read_text()).headings == [
        "Answers",
        "Can this be trusted?",
        "Overview",
        "What was planned",
        "What failed or was left out",
        "Plots",
        "Step times",
        "Memory and durations",
        "Load",
        "Roofline",
        "Environments",
        "How it was measured",
    ]
    words = read_words(page)
    assert "What does the GPU gain?" not in words
    for promised in ("kernels", "clocks and temperatures", "power and energy"):
        assert f"{promised}</span>" not in words  # what stands beside the title of a folded section
    assert 'class="warnings"' not in words
    assert "every planned repeat ended ok and is valid, and every pair of the comparisons has a ratio." in words


def test_a_run_of_which_nothing_ended_ok_has_a_report(render: Render) -> None:
    path = render(make_failed_result(status="timeout", message="no result after 600 s"), repeats=2)
    assert "0 of 2 planned repeats ended ok, in 1 cell. The others: 1 timeout, 1 missing." in read_words(path)
    assert Page(path.read_text()).headings == [
        "Answers",
        "Can this be trusted?",
        "Overview",
        "What was planned",
        "What failed or was left out",
        "Step times",
        "How it was measured",
    ]


def test_a_cell_in_two_environments_is_named_with_what_differs(render: Render) -> None:
    path = render(make_result(repeat=1), make_result(repeat=2, environment=make_environment(num_threads=1)), repeats=2)
    assert (
        "conv6 train, CPU, batch 64, 32 px, PyTorch eager ran in 2 environments, one row each; they differ in threads."
        in read_words(path)
    )


def test_a_ratio_stands_beside_the_number_of_machines_it_rests_on(full_report: Path) -> None:
    words = read_words(full_report)
    assert "one card and its host" in words
    assert "excludes equality" in words
    assert "(one card)" in words  # in the text of a figure


def test_moderated_intervals_are_said_to_be_so(render: Render) -> None:
    results = [
        make_result(make_cell(batch_size=size), repeat=repeat, step_seconds=[0.1 + size * repeat / 1000] * 3)
        for size in (1, 2, 3)
        for repeat in (1, 2, 3)
    ]
    assert "Moderated:" not in read_words(render(*results))
    words = read_words(render(*results, moderated=True))
    assert "Intervals are moderated: they use the spread of the run" in words
    assert "Moderated: 3 of the 3 intervals use the spread of the run's other cells too (Smyth 2004)." in words


def test_the_forecast_says_where_a_candidate_gives_none(render: Render) -> None:
    table = load_gpu_table(None)
    falling = table.assign(memory_gb=[max(1.0, 300.0 - 15 * (year - 2008)) for year in table["year"]])
    falling.attrs = table.attrs
    path = render(make_result(), repeats=1, forecast=fit_forecast(make_gpu_series(falling), year=2040))
    words = read_words(path)
    assert "polynomial 2: no forecast; polynomial 2 would give -180 GB for 2040" in words


def test_a_wide_matrix_has_a_panel_for_every_workload(render: Render) -> None:
    cells = [make_cell(batch_size=size) for size in range(1, 27)]
    path = render(*(make_result(cell) for cell in cells), repeats=1)
    words = read_words(path)
    step_times, *_, durations = Page(path.read_text()).figures
    assert (len(step_times["panels"]), len(durations["panels"])) == (26, 1)  # of durations a row for each cell
    assert "Drawn are" not in words  # nothing of any plot is left out
    assert words.count(", PyTorch eager</span></th>") / 5 == 26  # step times, memory, parts, roofline, devices


def test_a_table_of_many_rows_is_packed_and_says_all_of_them(render: Render) -> None:
    cells = [make_cell(batch_size=size) for size in range(1, MAX_STATIC_ROWS + 2)]
    html = render(*(make_result(cell) for cell in cells), repeats=1).read_text()
    headings, *rows = read_tables(html)["Training: time of one step"]
    assert headings[:2] == ("cell", "step time, ms")
    assert [row[:2] for row in (rows[0], rows[-1])] == [
        ("conv6 train, CPU, batch 1, 32 px, PyTorch eager", "100.0"),
        (f"conv6 train, CPU, batch {MAX_STATIC_ROWS + 1}, 32 px, PyTorch eager", "100.0"),
    ]
    assert ", PyTorch eager</span></th>" not in html


def test_many_repeats_with_many_steps_make_no_large_page(render: Render) -> None:
    results = [make_result(repeat=repeat, step_seconds=[0.1 + repeat / 1000] * 400) for repeat in range(1, 46)]
    path = render(*results, repeats=45)
    assert "45 of 45 planned repeats ended ok" in read_words(path)
    assert path.stat().st_size < 2_000_000


def test_a_section_with_tables_and_without_figures_is_shown(render: Render) -> None:
    """Figures of tenants are left out if their cell was not measured alone: they show ratios to that."""
    cell = make_cell(tenants=2)

    path = render(make_tenants_result(cell, [0.1] * 10, [0.2] * 10), repeats=1)

    assert "Sharing" in Page(path.read_text()).headings


def test_the_rule_for_sides_of_different_numbers_of_repeats_is_printed(full_report: Path) -> None:
    """Who checked the interval of 3 and 2 repeats by the printed formula got another one."""
    assert "the root is at least that of two sides that vary alike" in full_report.read_text()

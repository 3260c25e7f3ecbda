"""Tables that fit the terminal."""

import io

from rich.console import Console

from runner.terminal_table import print_table

COLUMNS = ["cell", "step time, ms", "IQR of steps, ms", "samples/s", "note"]
ROWS = [["conv6 train, CPU, batch 16", "52.1", "51.3 to 53.5", "303", ""]]


def render(*, width: int, terminal: bool) -> str:
    file = io.StringIO()
    print_table(Console(file=file, width=width, force_terminal=terminal, color_system=None), COLUMNS, ROWS)
    return file.getvalue()


def test_a_pipe_gets_every_column_on_one_line_however_wide() -> None:
    header, row = render(width=40, terminal=False).splitlines()
    assert ["cell", "step", "time,", "ms", "IQR", "of", "steps,", "ms", "samples/s"] == header.split()
    assert "conv6 train, CPU, batch 16           52.1      51.3 to 53.5        303" == row.rstrip()


def test_a_narrow_terminal_leaves_dispensable_columns_out_before_it_breaks_lines() -> None:
    header, row = render(width=54, terminal=True).splitlines()
    assert ["cell", "step", "time,", "ms", "samples/s"] == header.split()
    assert row.startswith("conv6 train, CPU, batch 16 ")


def test_a_terminal_too_narrow_for_the_rest_breaks_lines_and_loses_nothing() -> None:
    lines = render(width=30, terminal=True).splitlines()
    assert all(len(line) <= 30 for line in lines)
    assert "52.1" in "".join(lines)


def test_an_empty_column_is_not_shown() -> None:
    assert "note" not in render(width=200, terminal=True)

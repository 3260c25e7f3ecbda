"""Repeats that did not end ok, in words: those that ended alike share one text, whichever cell they are of."""

from collector.report.page import describe_failures
from collector.results.summary import list_failures
from factories import make_cell, make_failed_result, make_result
from measured_runs import Collect


def test_repeats_that_ended_alike_share_one_text_with_the_cells_and_one_output(collect: Collect) -> None:
    first, second = make_cell(batch_size=1), make_cell(batch_size=2)
    results = [
        make_result(first, repeat=1),
        make_failed_result(first, repeat=2),
        make_failed_result(second, repeat=1, stderr_tail="line 31"),
        make_failed_result(second, repeat=2, status="oom", message="3 GiB asked for"),
    ]

    texts = describe_failures(list_failures(collect(*results, repeats=4)))

    names = ["conv6 train, CPU, batch 1, 32 px, PyTorch eager", "conv6 train, CPU, batch 2, 32 px, PyTorch eager"]
    assert [(text.status, text.title, text.members) for text in texts] == [
        ("missing", "4 repeats of 2 cells", (f"{names[0]}, repeats 3 and 4", f"{names[1]}, repeats 3 and 4")),
        ("failed", "2 repeats of 2 cells", (f"{names[0]}, repeat 2", f"{names[1]}, repeat 1")),
        ("oom", f"{names[1]}, repeat 2", ()),
    ]
    assert [(text.stderr_tail, text.writer) for text in texts] == [
        ("", ""),
        ("line 31", f"{names[1]}, repeat 1"),
        ("", ""),
    ]
    assert texts[1].reason == "RuntimeError: it broke (kind exception)"

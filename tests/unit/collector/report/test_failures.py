"""Repeats that did not end ok, in words: those of which the same is to say share one text."""

from collector.report.failures import describe_failures
from collector.results.summary import list_failures
from factories import make_cell, make_failed_result, make_result
from measured_runs import Collect


def test_repeats_that_are_missing_share_one_text_and_failures_with_words_of_their_own_do_not(collect: Collect) -> None:
    first, second = make_cell(batch_size=1), make_cell(batch_size=2)
    results = [make_result(first, repeat=1), make_failed_result(first, repeat=2), make_failed_result(second, repeat=1)]
    texts = describe_failures(list_failures(collect(*results, repeats=4)))
    found = [(text.cell_id, text.title.rpartition(", repeat")[2], text.status) for text in texts]
    assert found == [
        (first.cell_id, " 2", "failed"),
        (first.cell_id, "s 3 and 4", "missing"),
        (second.cell_id, " 1", "failed"),
        (second.cell_id, "s 2, 3 and 4", "missing"),
    ]

"""collector.units: the first of many texts."""

import pytest

from collector.units import join_some


@pytest.mark.parametrize(
    ("number", "words"), [(0, ""), (1, "0"), (2, "0, 1"), (3, "0, 1 and 1 more"), (1002, "0, 1 and 1,000 more")]
)
def test_the_first_texts_stand_before_the_number_of_the_others(number: int, words: str) -> None:
    assert join_some([str(one) for one in range(number)], 2) == words

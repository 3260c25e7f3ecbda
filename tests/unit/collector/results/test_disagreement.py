"""Repeats disagree where a gap between them is wider than the spread of their own steps."""

import numpy as np
import pytest

from collector.results.summary import describe_disagreement


def spread(center: float, width: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return eleven steps evenly from `width` below the centre to as much above it."""
    return np.linspace(center * (1 - width), center * (1 + width), 11)


@pytest.mark.parametrize(
    ("centers", "width", "words"),
    [
        # 69.6 over the geometric mean of 61.3 and 61.4 is 1.1345.
        ((61.3, 69.6, 61.4), 0.002, "1 of 3 takes 13 % longer: 61.3, 61.4 and 69.6 ms"),
        ((61.3, 69.6, 69.4, 61.4), 0.002, "2 of 4 take 13 % longer: 61.3, 61.4, 69.4 and 69.6 ms"),
        ((61.3, 69.6, 61.4, 61.2, 61.3, 61.5), 0.002, "1 of 6 takes 13 % longer: 61.2 to 69.6 ms"),
        # Nine tenths of the steps of the slower one are above 69.6 * 0.952, of the faster ones below 61.4 * 1.048.
        ((61.3, 69.6, 61.4), 0.06, ""),
        ((61.3, 63.0, 61.4), 0.002, ""),  # 2.6 % apart
        ((61.3,), 0.002, ""),
    ],
    ids=("one apart", "two apart", "many repeats", "steps spread as far", "a small gap", "one repeat"),
)
def test_repeats_disagree_by_more_than_their_steps_spread(centers: tuple[float, ...], width: float, words: str) -> None:
    seconds = [center / 1000 for center in centers]
    assert describe_disagreement(seconds, [spread(center, width) for center in seconds]) == words

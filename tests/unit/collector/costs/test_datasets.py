"""Data sets by name or by the number of their samples."""

import pytest

from bench.errors import UserError
from collector.costs.evaluation import find_data_set


@pytest.mark.parametrize(
    ("text", "num_samples"),
    [("imagenet", 1_281_167), ("cifar10", 50_000), ("horse2zebra", 1_334), ("1_000_000", 10**6), ("60,000", 60_000)],
)
def test_a_data_set_has_its_number_of_samples(text: str, num_samples: int) -> None:
    assert find_data_set(text).num_samples == num_samples


@pytest.mark.parametrize(
    ("text", "hint"),
    [("ImageNets", "did you mean 'imagenet'?"), ("0", "known are"), ("x", "known"), ("1,5", "known")]
    + [("_", "known")],
)
def test_another_name_is_one_message(text: str, hint: str) -> None:
    with pytest.raises(UserError, match="give the number of its samples") as caught:
        find_data_set(text)
    assert hint in str(caught.value)

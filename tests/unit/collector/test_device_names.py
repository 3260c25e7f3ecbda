"""Names of devices are compared by their words."""

import pytest

from collector.prices.table import has_words


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("Tesla T4", "T4", True),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB", True),
        ("NVIDIA A100-SXM4-80GB", "A100 40GB", False),
        ("NVIDIA L40S", "L4", False),
        ("NVIDIA H100 PCIe", "H100 80GB HBM3", False),
        ("NVIDIA H200", "nvidia h200", True),
        ("NVIDIA H200", "nvidia", False),
    ],
)
def test_a_name_holds_whole_words(name: str, words: str, expected: bool) -> None:
    assert has_words(name, words) is expected

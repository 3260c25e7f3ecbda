"""Finding the device that a row names."""

import pytest

from audit_tables import make_row, make_table
from collector.audit.table import StatedDevice, find_device


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Tesla T4", "Tesla T4"),
        ("NVIDIA T4", "Tesla T4"),
        ("t4", "Tesla T4"),
        ("L4", "NVIDIA L4"),
        ("A100 80GB PCIe", "NVIDIA A100 80GB PCIe"),
        ("H100 SXM", "NVIDIA H100 80GB HBM3"),
        ("h100 pcie", "NVIDIA H100 PCIe"),
        ("H200", "NVIDIA H200"),
    ],
)
def test_a_gpu_is_known_by_the_names_that_people_give_it(name: str, known: str) -> None:
    assert find_device(make_table(make_row(device=name)), make_row(device=name)).name == known


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("V100", "'V100' can be Tesla V100-SXM2-16GB or .*; write which"),
        ("Tesla T5", r"did you mean 'Tesla T4'\?"),
        ("abacus", "known are Round, "),
    ],
)
def test_a_device_that_is_not_known_or_several_is_an_error(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_table(make_row(device=name))


def test_what_a_table_states_comes_before_what_is_known_and_a_row_before_both() -> None:
    stated = StatedDevice(name="Tesla T4", source="a test", tflops={"fp32": 1.0})
    row = make_row(device="tesla t4")
    assert find_device(make_table(row, devices=(stated,)), row).find_peak("fp32")[0] == 1e12
    own = make_row(device="tesla t4", peak_tflops=2.0, peak_source="another")
    found = find_device(make_table(own, devices=(stated,)), own)
    assert (found.find_peak("fp32")[0], found.source) == (2e12, "another")


def test_a_cpus_peak_is_cores_times_width_times_clock_at_fp32_only() -> None:
    cpu = StatedDevice(name="CPU", source="a test", cores=16, flops_per_cycle=32, gigahertz=2.4, bound_gigahertz=3.2)
    row = make_row(device="CPU")
    found = find_device(make_table(row, devices=(cpu,)), row)
    assert found.find_peak("fp32") == pytest.approx((1228.8e9, 1638.4e9))
    assert found.find_peak("bf16") == (None, None)


@pytest.mark.parametrize(
    ("name", "bound_over_peak"), [("T4", 1.0), ("H200", 1.0), ("RTX 4090", 1.2), ("Tesla P4", 1.2)]
)
def test_a_card_that_clocks_beyond_its_rated_boost_is_bound_by_more(name: str, bound_over_peak: float) -> None:
    row = make_row(device=name)
    found = find_device(make_table(row), row)
    peak, bound = found.find_peak("fp32")
    assert peak is not None
    assert bound == pytest.approx(bound_over_peak * peak)

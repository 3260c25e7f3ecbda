"""In which settings the sides of a comparison differ, besides what is compared."""

import pytest

from bench.schema import Environment
from collector.analysis import Analysis, analyze_run
from collector.comparisons import PRECISIONS
from collector.tables.comparisons import make_comparison_table
from factories import make_cell, make_environment, make_gpu
from measured_runs import Collect
from spread_runs import make_spread


def make_gpu_environment(**settings: str | bool) -> Environment:
    """Return an environment of PyTorch on a card, with these settings."""
    return make_environment(gpus=(make_gpu(),), versions={"torch": "2.0"}, settings=settings)


def analyze(collect: Collect, fp32: Environment, bf16: Environment) -> Analysis:
    """Return a run in which fp32 takes three times as long as bf16."""
    cells = [make_cell(device="gpu", precision=precision) for precision in ("fp32", "bf16")]
    return analyze_run(collect(*make_spread(cells[0], 3.0, fp32), *make_spread(cells[1], 1.0, bf16)))


def read_remark(analysis: Analysis) -> str:
    table = make_comparison_table(PRECISIONS, analysis)
    return table.remark


def test_a_layout_that_comes_with_a_precision_is_said_beside_its_ratio(collect: Collect) -> None:
    nchw = make_gpu_environment(memory_format="NCHW", optimizer="default Adam", cudnn_benchmark=True, cuda_graph=False)
    nhwc = make_gpu_environment(memory_format="NHWC", optimizer="default Adam", cudnn_benchmark=False, cuda_graph=True)
    remark = read_remark(analyze(collect, nchw, nhwc))
    assert remark.endswith(
        "The sides differ in settings, too: layout of images NHWC / NCHW; use of CUDA graphs yes / no. How much of a "
        "ratio that explains is not known."
    )


@pytest.mark.parametrize("other", [{"memory_format": "NCHW"}, {}], ids=["same", "not recorded"])
def test_nothing_is_said_of_settings_that_are_the_same_or_not_recorded(
    collect: Collect, other: dict[str, str | bool]
) -> None:
    environments = make_gpu_environment(memory_format="NCHW"), make_gpu_environment(**other)
    remark = read_remark(analyze(collect, *environments))
    assert "settings" not in remark

"""In which settings the sides of a comparison differ, besides what is compared."""

import pytest

from answered_runs import make_spread
from bench.schema import Environment
from collector.analysis import Analysis, analyze_run
from collector.answers.faster_table import make_faster_table
from collector.comparisons import PRECISIONS
from collector.tables.comparisons import make_comparison_table
from factories import make_cell, make_environment, make_gpu
from measured_runs import Collect


def make_gpu_environment(**settings: str | bool) -> Environment:
    """Return an environment of PyTorch on a card, with these settings."""
    return make_environment(gpus=(make_gpu(),), versions={"torch": "2.0"}, settings=settings)


def analyze(collect: Collect, fp32: Environment, bf16: Environment) -> Analysis:
    """Return a run in which fp32 takes three times as long as bf16."""
    cells = [make_cell(device="gpu", precision=precision) for precision in ("fp32", "bf16")]
    return analyze_run(collect(*make_spread(cells[0], 3.0, fp32), *make_spread(cells[1], 1.0, bf16)))


def read_remark_and_doubt(analysis: Analysis) -> tuple[str, str]:
    """Return the remark of the table of precisions, and what to beware of in the table over all work."""
    table, longer = make_comparison_table(PRECISIONS, analysis), make_faster_table(analysis)
    assert table is not None
    assert longer is not None
    return table.remark, longer.rows["doubt"].iloc[0]


def test_a_layout_that_comes_with_a_precision_is_said_beside_its_ratio(collect: Collect) -> None:
    nchw = make_gpu_environment(memory_format="NCHW", optimizer="default Adam", cudnn_benchmark=True)
    nhwc = make_gpu_environment(memory_format="NHWC", optimizer="default Adam", cudnn_benchmark=False)
    remark, doubt = read_remark_and_doubt(analyze(collect, nchw, nhwc))
    assert remark.endswith(
        "The sides differ in settings, too: layout of images NHWC / NCHW. How much of a ratio that explains is not "
        "known."
    )
    assert doubt == "layout of images differs, too"


def test_several_settings_are_named_together(collect: Collect) -> None:
    first = make_gpu_environment(memory_format="NCHW", cuda_graph=False)
    second = make_gpu_environment(memory_format="NHWC", cuda_graph=True)
    remark, doubt = read_remark_and_doubt(analyze(collect, first, second))
    assert "layout of images NHWC / NCHW; use of CUDA graphs yes / no." in remark
    assert doubt == "layout of images and use of CUDA graphs differ, too"


@pytest.mark.parametrize("other", [{"memory_format": "NCHW"}, {}], ids=["same", "not recorded"])
def test_nothing_is_said_of_settings_that_are_the_same_or_not_recorded(
    collect: Collect, other: dict[str, str | bool]
) -> None:
    environments = make_gpu_environment(memory_format="NCHW"), make_gpu_environment(**other)
    remark, doubt = read_remark_and_doubt(analyze(collect, *environments))
    assert ("settings" in remark, doubt) == (False, "")

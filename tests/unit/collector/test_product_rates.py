"""What the matrix products of a run's results say of its hosts and of the frameworks."""

from collector.analysis import Analysis, analyze_run
from collector.doubts import Doubt, list_doubts
from factories import make_cell, make_environment, make_result, make_roofline
from host_figures import make_host_figures
from measured_runs import Collect

PYTORCH, TENSORFLOW = make_cell(), make_cell(framework="tensorflow", mode="graph")


def analyze(collect: Collect, pytorch: tuple[float, ...], tensorflow: tuple[float, ...]) -> Analysis:
    """Return a run in which the products of both frameworks ran at these rates, in GFLOP/s."""
    results = [
        make_result(
            cell,
            repeat=number,
            host_peak=make_host_figures(None, 1e9 * rate, None, framework=cell.framework),
            roofline=make_roofline(),
            environment=make_environment(hostname="bench-1", num_threads=2),
        )
        for cell, rates in ((PYTORCH, pytorch), (TENSORFLOW, tensorflow))
        for number, rate in enumerate(rates, 1)
    ]
    return analyze_run(collect(*results))


def find_speed(analysis: Analysis) -> Doubt | None:
    return next((doubt for doubt in list_doubts(analysis) if doubt.code == "host-speed"), None)


def test_a_host_whose_speed_changed_is_a_reason_for_doubt(collect: Collect) -> None:
    line = find_speed(analyze(collect, (190, 196, 204), (304, 350, 405)))
    assert line is not None
    assert line.severity == "beware"
    assert line.text.startswith(
        "The host's speed changed by more than 10 %: on bench-1, matrix products of TensorFlow (fp32, 2 threads) ran "
        "at 304 to 405 GFLOP/s in 3 results on the CPU (the faster of two in each), 33.2 % apart."
    )


def test_a_host_whose_speed_stayed_is_none(collect: Collect) -> None:
    """That two frameworks differ is no change of the host."""
    assert find_speed(analyze(collect, (190, 196, 204), (304, 310, 320))) is None

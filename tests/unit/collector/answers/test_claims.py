"""The study's headline claims stand among the answers of a run that has a ratio of what they compare."""

from typing import Any

import pytest

from answered_runs import GPU_PYTORCH, GPU_TENSORFLOW, answer, make_spread
from bench.schema import Result
from collector.analysis import analyze_run
from collector.answers.claim_rules import judge_claims, name_claim_anchor
from collector.claims.page import find_claim_results
from collector.comparisons import FRAMEWORKS
from collector.results.frames import list_rows
from collector.results.intervals import read_estimate
from collector.tables.comparisons import make_comparison_table
from factories import make_cell
from measured_runs import Collect
from study_runs import TABLE_RATIOS, make_ratios

CLAIM = (
    "TensorFlow's inference latency is about 15 % lower than PyTorch's (a study that this tool checks, "
    "arXiv 2603.20920)."
)
MEASURED = "Measured, TensorFlow graph against PyTorch eager:"
GPU_INFERENCE: dict[str, Any] = {"device": "gpu", "phase": "infer", "model": "vgg16", "input_size": 224}


def make_pair(seconds: float = 0.09, **fields: Any) -> list[Result]:
    """Return PyTorch at 0.1 s and TensorFlow's graph at `seconds`."""
    graph = make_cell(framework="tensorflow", mode="graph", **fields)
    return [*make_spread(make_cell(**fields), 0.1, GPU_PYTORCH), *make_spread(graph, seconds, GPU_TENSORFLOW)]


@pytest.mark.parametrize(
    ("fields", "anchors"),
    [
        (GPU_INFERENCE, ["claim-latency"]),
        (GPU_INFERENCE | {"batch_size": 1}, ["claim-latency"]),  # not the study's batch: named, and decides nothing
        (GPU_INFERENCE | {"phase": "train"}, []),
        (GPU_INFERENCE | {"device": "cpu"}, []),
    ],
)
def test_a_claim_is_answered_where_the_run_has_its_ratio(
    collect: Collect, fields: dict[str, Any], anchors: list[str]
) -> None:
    answers = [one for one in answer(collect, make_pair(**fields)) if one.rule == "claims"]
    assert [one.anchor for one in answers] == anchors
    for one in answers:
        assert one.text.startswith(f"Not tested here: {CLAIM} {MEASURED} vgg16 infer")
        assert "). The claim is a mean over 4 models at the study's own batches and sizes" in one.text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ((0.121,), ["21.0 % higher ("]),
        ((0.1,), ["no difference shown. The claim "]),
        ((0.085,), ["15.0 % lower ("]),
        ((0.05,), ["50.0 % lower ("]),
        ((0.098, 0.12), [", batch 64 no difference shown. ", "20.0 % higher ("]),
        ((0.085, 0.05), ["15.0 % lower (", "50.0 % lower ("]),
    ],
)
def test_a_claim_is_answered_in_its_own_base_alone(
    collect: Collect, seconds: tuple[float, ...], words: list[str]
) -> None:
    """Who reads 15 % lower beside 17.6 % longer has to convert one of them."""
    results = [
        result
        for batch_size, own in zip((64, 1), seconds, strict=False)
        for result in make_pair(own, **GPU_INFERENCE, batch_size=batch_size)
    ]
    (text,) = [one.text for one in answer(collect, results) if one.rule == "claims"]
    assert f" {MEASURED} vgg16 infer" in text
    for one in words:
        assert one in text, text
    assert "longer" not in text


def test_the_mean_that_decides_a_claim_is_said_to_have_an_interval_of_its_own(collect: Collect) -> None:
    results = make_ratios(dict.fromkeys(TABLE_RATIOS, 1.5))
    (text,) = [one.text for one in answer(collect, results) if one.anchor == "claim-latency"]
    assert text.startswith(f"Not reproduced: {CLAIM} ")
    assert "; arithmetic mean 50.0 % higher (" in text
    assert ", not widened for other ratios)" in text


def test_a_claim_quotes_the_same_interval_as_the_table_of_its_pair(collect: Collect) -> None:
    results = [*make_pair(0.121, **GPU_INFERENCE), *make_pair(0.121, **GPU_INFERENCE, batch_size=1)]
    table = make_comparison_table(FRAMEWORKS, analyze_run(collect(*results)))
    assert table is not None
    interval = dict(zip(table.headings, table.format_rows()[0], strict=True))["95 % interval"]
    (text,) = [one.text for one in answer(collect, results) if one.rule == "claims"]
    assert f"vgg16 infer, batch 1 21.0 % higher ({interval.removesuffix(' %')})" in text


def test_the_evidence_of_a_claim_has_the_interval_of_the_table_too(collect: Collect) -> None:
    results = [*make_pair(0.121, **GPU_INFERENCE), *make_pair(0.121, **GPU_INFERENCE, batch_size=1)]
    analysis = analyze_run(collect(*results))
    pair = list_rows(analysis.comparisons[FRAMEWORKS.name])[0]
    low, high = read_estimate(pair, center="ratio").find_joint_interval(2) or (0.0, 0.0)
    (latency,) = [result for result in judge_claims(analysis) if result.id == "latency"]
    assert f"1.21 times (95 % interval {low:.2f} to {high:.2f}) as long as PyTorch eager" in latency.measured[0]
    assert f"{high:.2f}" != f"{pair['ratio_high']:.2f}"  # that of the ratio alone


def test_the_anchor_of_a_claim_is_that_of_its_result(collect: Collect) -> None:
    analysis = analyze_run(collect(*make_pair(**GPU_INFERENCE)))
    ids = [result.id for result in find_claim_results(analysis.summary, forecast=None)]
    assert len(set(ids)) == len(ids)
    assert name_claim_anchor("latency") in {name_claim_anchor(claim_id) for claim_id in ids}

"""The study's headline claims stand among the answers of a run that has a ratio of what they compare."""

from typing import Any

import pytest

from answered_runs import GPU_PYTORCH, GPU_TENSORFLOW, answer, make_spread
from bench.schema import Result
from collector.analysis import analyze_run
from collector.answers.claim_rules import name_claim_anchor
from collector.claims.page import find_claim_results
from factories import make_cell
from measured_runs import Collect

GPU_INFERENCE = {"device": "gpu", "phase": "infer", "model": "vgg16", "input_size": 224}


def make_pair(**fields: Any) -> list[Result]:
    graph = make_cell(framework="tensorflow", mode="graph", **fields)
    return [*make_spread(make_cell(**fields), 0.1, GPU_PYTORCH), *make_spread(graph, 0.09, GPU_TENSORFLOW)]


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
    collect: Collect, fields: dict[str, object], anchors: list[str]
) -> None:
    answers = [one for one in answer(collect, make_pair(**fields)) if one.rule == "claims"]
    assert [one.anchor for one in answers] == anchors
    for one in answers:
        assert one.text.startswith(
            "TensorFlow's inference latency is about 15 % lower than PyTorch's, says the study: not tested here. Why: "
        )


def test_the_anchor_of_a_claim_is_that_of_its_result(collect: Collect) -> None:
    analysis = analyze_run(collect(*make_pair(**GPU_INFERENCE)))
    ids = [result.id for result in find_claim_results(analysis.summary, forecast=None)]
    assert len(set(ids)) == len(ids)
    assert name_claim_anchor("latency") in {name_claim_anchor(claim_id) for claim_id in ids}

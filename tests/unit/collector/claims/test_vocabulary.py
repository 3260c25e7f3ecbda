"""A verdict on a claim has one name: in the answer, in the claims' section, in its heading and in the documentation."""

import re
from typing import get_args

import pytest

from bench.schema import Result
from collector.analysis import analyze_run
from collector.answers.claim_rules import find_claims, judge_claims
from collector.claims.page import count_verdicts
from collector.claims.verdicts import ClaimVerdict
from collector.report.section_contents import collect_claims
from measured_runs import Collect
from runner.checkout import ROOT
from study_runs import TABLE_RATIOS, make_ratios

VERDICTS = get_args(ClaimVerdict)
OTHER_WORDS = re.compile(r"no verdict|undecided|untested|not judged|unclear|refuted|confirmed")


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (make_ratios({"vgg16": 1.21}), "not tested here"),
        (make_ratios(dict.fromkeys(TABLE_RATIOS, 0.85)), "reproduced"),
        (make_ratios(dict.fromkeys(TABLE_RATIOS, 1.5)), "not reproduced"),
    ],
)
def test_the_answer_the_section_and_its_heading_name_a_verdict_alike(
    collect: Collect, results: list[Result], verdict: ClaimVerdict
) -> None:
    analysis = analyze_run(collect(*results))
    said = next(one.text for one in find_claims(analysis) if one.anchor == "claim-latency")
    (result,) = (one for one in judge_claims(analysis) if one.id == "latency")
    assert result.verdict == verdict
    assert said.startswith(f"{verdict[:1].upper()}{verdict[1:]}: ")
    content = collect_claims(analysis)
    assert [one.verdict for one in content["results"] if one.id == "latency"] == [verdict]
    assert re.search(rf"\d {verdict}(,|$)", content["summary"])
    for text in (said, content["summary"]):
        assert not OTHER_WORDS.search(text), text


def test_the_heading_of_the_claims_is_short_and_counts_every_verdict(collect: Collect) -> None:
    results = judge_claims(analyze_run(collect(*make_ratios({"vgg16": 1.21}))))
    heading = count_verdicts(results)
    number, _, listed = heading.partition(" claims: ")
    counts = [part.partition(" ") for part in listed.split(", ")]
    assert sum(int(count) for count, _, _ in counts) == int(number) == len(results)
    assert {verdict for _, _, verdict in counts} == {result.verdict for result in results} <= set(VERDICTS)
    assert len(heading) < 200


@pytest.mark.parametrize("page", ["glossary.md", "report.md"])
def test_the_documentation_has_every_verdict_by_its_name(page: str) -> None:
    text = " ".join((ROOT / "docs" / page).read_text().lower().split())
    assert [verdict for verdict in VERDICTS if verdict.lower() not in text] == []

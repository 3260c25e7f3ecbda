"""The first words of the published H200 study's report answer what a stranger asks of it, and are few."""

import re
from collections.abc import Iterator

import pytest

from bench.store import Store
from collector.analysis import Analysis, analyze_run
from collector.answers.faster_table import make_faster_table
from collector.answers.fastest_rules import make_fastest_table
from collector.answers.measured import describe_measured
from collector.facts import state_outcome
from collector.report.section_contents import collect_answers
from collector.report.trust import list_trust_lines
from collector.results.load import load_run
from runner.checkout import ROOT

FOLDER, RUN_ID = ROOT / "docs" / "results" / "2026-11-21-h200", "study-h200-2"
MOST_WORDS = 800
"""In the page's header and the sentences of its first two sections, without links and headings."""
MOST_ROWS = 30
"""Of both tables: rows are looked up by what is compared, not read one after the other."""


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """Return the analysis of the study."""
    return analyze_run(load_run(Store.open(FOLDER.resolve().as_uri()), RUN_ID))


@pytest.fixture(scope="module")
def words(analysis: Analysis) -> str:
    """Return the text of the page down to the plan: its tables, then its sentences."""
    return " ".join([*list_rows(analysis), *list_sentences(analysis)])


def list_sentences(analysis: Analysis) -> Iterator[str]:
    yield from (state_outcome(analysis.collection), describe_measured(analysis))
    yield from (f"{line.title}: {line.text}" for line in list_trust_lines(analysis))
    content = collect_answers(analysis)
    for name in ("findings", "unknowns", "certainties"):
        yield from (f"{answer.title}. {answer.text}" for answer in content[name])


def list_rows(analysis: Analysis) -> Iterator[str]:
    for table in (make_fastest_table(analysis), make_faster_table(analysis)):
        assert table is not None
        yield from (" ".join(row) for row in (table.headings, *table.format_rows()))
        yield f"{table.alike} {table.remark}"


def test_the_first_words_are_few(analysis: Analysis) -> None:
    assert len(" ".join(list_sentences(analysis)).split()) <= MOST_WORDS
    assert len(list(list_rows(analysis))) <= MOST_ROWS


@pytest.mark.parametrize(
    "answer",
    [
        r"inference of vgg16 \(batches 1 and 64, 224 px, 10 classes\); fp32, synthetic data",
        r"through Keras: TensorFlow graph, eager and compiled; JAX compiled\. Of vgg16 and resnet18 alone: JAX",
        r"54 of 54 planned repeats ended ok",
        r"54 of 54 are valid; 3 count in each cell, of \d+ to \d+ steps a repeat, [\d.]+ to [\d.]+ s\. Valid says",
        r"Idle machine: Whether others used the GPU was not visible in 54 of 54 repeats",
        r"Clocks: The GPU's clock was at 100 % .* Whether the driver held it down at times is not recorded",
        r"vgg16 infer, batch 64 TensorFlow graph 40\.\d+ [\d,]+ \w+ compiled; not told from it: PyTorch eager \(40",
        r"resnet18 train not told apart: PyTorch eager, JAX compiled 24\.\d+ [\d,]+ JAX compiled 24\.\d+ no differ",
        r"no difference shown .{1,30} TensorFlow graph: 88\.4 % longer than the first \(82",
        r"conv6 train .* graph 63\.98 no difference shown .{1,35}graph: 61\.3 to 69\.6 ms, repeats dis",
        r"Not tested here: TensorFlow's inference latency is about 15 % lower than PyTorch's \(a study that ",
        r"TensorFlow graph against PyTorch eager: vgg16 infer, batch 1 21\.3 % higher \(.{,40}, batch 64 1\.3 % lower",
        r"The claim is a mean over 4 models .* has 1 of them on NVIDIA H200: vgg16 at 224 px",
        r"vgg16 train PyTorch eager TensorFlow graph: 3\.8 % longer 1\.5 to 6\.1 %",
        r"resnet18 train no difference shown JAX compiled: 1\.0 % longer −0\.7 to 2\.7 %",
        r"inference: compiled against graph, XLA alone vgg16 infer, batch 1 compiled graph: 2\.8 % ",
        r"PyTorch compiled \(torch\.compile\)  not planned",
        r"compiled against eager .* vgg16 infer, batch 64 compiled eager: 17\.4 % ",
        r"497\.8 samples/s at batch 1, 1,577 at 64: batch 64 gives 3\.17 times as many as batch 1 \(3\.16 to 3\.18\)",
        r"Most in use on the GPU: vgg16 train: JAX compiled 32\.9 GiB \(tensors 13\.1 GiB, by XLA's plan\), TensorFlow",
        r"34 of 48 combinations .* were not planned\. Not measured with any program: inference of conv6, resnet18 and",
        r"GPU, not CPU\), one precision \(fp32, not tf32, fp16 or bf16\), one GPU at a time, synthetic data and one",
        r"The speed over hours is not known: at most 4\.7 s were timed in one go",
        r"All 3 rounds measured the cells in one order: what each leaves behind for the next \(heat, say\)",
        r"the fastest for a sample is also the cheapest, start-up aside",
        r"Costs need prices: benchmatrix cost study-h200-2",
        r"one card \(NVIDIA H200\): by how much others of the kind differ is not known",
        r"conv6 train, TensorFlow graph, 1 of 3 takes 13 % longer: 61.3, 61.4 and 69.6 ms",
    ],
)
def test_what_a_stranger_asks_is_in_them(words: str, answer: str) -> None:
    assert re.search(answer, words), answer


def test_no_mode_is_named_that_was_not_run_and_no_pair_has_a_second_number(words: str) -> None:
    assert "fused-norm" not in words
    # The pair of TensorFlow's graph and PyTorch at batch 64, as a share of the other time and as a ratio.
    # As a share of the other time it stands once, in the sentence on the claim, which is stated so.
    assert re.findall(r"(?:\S+ ){5}1\.3\d? % (?:lower|faster)|0\.98\d", words) == [
        "25.5); vgg16 infer, batch 64 1.3 % lower"
    ]


@pytest.mark.parametrize(
    "said_once",
    [
        "excludes equality",
        "3 repeats a side",
        "34 of 48",
        r"torch\.compile",
        "not checked",
        "nobody|which was not visible|not visible",
    ],
)
def test_what_is_said_is_said_once(words: str, said_once: str) -> None:
    assert len(re.findall(said_once, words, re.IGNORECASE)) == 1

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
MOST_WORDS = 1200
"""In the page's header and its first two sections, without links and headings."""


@pytest.fixture(scope="module")
def words() -> str:
    """Return the text of the page down to the plan, in its order."""
    analysis = analyze_run(load_run(Store.open(FOLDER.resolve().as_uri()), RUN_ID))
    return " ".join(list_texts(analysis))


def list_texts(analysis: Analysis) -> Iterator[str]:
    yield from (state_outcome(analysis.collection), describe_measured(analysis))
    yield from (f"{line.title}: {line.text}" for line in list_trust_lines(analysis))
    content = collect_answers(analysis)
    for table in (make_fastest_table(analysis), make_faster_table(analysis)):
        assert table is not None
        yield " ".join(table.headings)
        yield from (" ".join(row) for row in table.format_rows())
        yield f"{table.alike} {table.remark}"
    for name in ("findings", "unknowns", "certainties"):
        yield from (f"{answer.title}. {answer.text}" for answer in content[name])


def test_the_first_words_are_few(words: str) -> None:
    assert len(words.split()) <= MOST_WORDS


@pytest.mark.parametrize(
    "answer",
    [
        r"inference of vgg16 \(batches 1 and 64, 224 px, 10 classes\); fp32, synthetic data",
        r"through Keras: TensorFlow graph, eager and compiled; JAX compiled\. Of vgg16 and resnet18 alone: JAX",
        r"54 of 54 planned repeats ended ok",
        r"54 of 54 are valid; 3 count in each cell, of \d+ to \d+ steps a repeat, [\d.]+ to [\d.]+ s\. Valid says",
        r"Idle machine: Whether others used the GPU was not visible in 54 of 54 repeats",
        r"Clocks: The GPU's clock was at 100 % .* Whether the driver held it down at times is not recorded",
        r"vgg16 infer, batch 64 TensorFlow graph 40\.\d+ [\d,]+ tie: \w+ compiled, PyTorch eager \(40\.\d+ ms\) 40",
        r"resnet18 train tie: PyTorch eager, JAX compiled 24\.\d+ [\d,]+ JAX compiled \(tied\) 24\.\d+ no difference ",
        r"no difference shown .{1,30} TensorFlow graph: 88\.4 % longer than the first \(82",
        r"conv6 train .* graph \(tied\) 63\.98 no difference shown .{1,35}graph: 61\.3 to 69\.6 ms, repeats dis",
        r"Not tested here: TensorFlow's inference latency is about 15 % lower than PyTorch's \(a study that ",
        r"TensorFlow graph against PyTorch eager: vgg16 infer, batch 1 21\.3 % higher \(.{,40}, batch 64 1\.3 % lower",
        r"The claim is a mean over 4 models .* has 1 of them on NVIDIA H200: vgg16 at 224 px",
        r"PyTorch eager 4 of 6 \(training 3, inference 1\) vgg16 train: 3\.8 % \([^)]*\) up to cyclegan train: 92\.0",
        r"JAX compiled against PyTorch eager no difference shown 1 of 2 resnet18 train",
        r"inference: compiled against graph, XLA alone compiled 1 of 2 vgg16 infer, batch 1: 2\.8 % ",
        r"PyTorch compiled \(torch\.compile\) not planned",
        r"compiled against eager compiled 2 of 2 .{,30}: 17\.4 % ",
        r"497\.8 samples/s at batch 1, 1,577 at 64: batch 64 gives 3\.17 times as many as batch 1 \(3\.16 to 3\.18\)",
        r"Most in use on the GPU: vgg16 train: JAX compiled 32\.9 GiB \(tensors 13\.1 GiB, by XLA's plan\), TensorFlow",
        r"34 of 48 combinations .* were not planned\. For no program: inference of conv6, resnet18 and cyclegan\.",
        r"GPU, not CPU\), one precision \(fp32, not tf32, fp16 or bf16\), one GPU a cell, synthetic data and one",
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
        "25.5), vgg16 infer, batch 64 1.3 % lower"
    ]


@pytest.mark.parametrize(
    "said_once",
    [
        "excludes equality",
        "3 repeats",
        "34 of 48",
        r"torch\.compile",
        "not checked",
        "nobody|which was not visible|not visible",
    ],
)
def test_what_is_said_is_said_once(words: str, said_once: str) -> None:
    assert len(re.findall(said_once, words, re.IGNORECASE)) == 1

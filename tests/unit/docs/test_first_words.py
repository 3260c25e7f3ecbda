"""The first words of the published H200 study's report answer what a stranger asks of it, and are few."""

import re
from collections.abc import Iterator

import pytest

from bench.store import Store
from collector.analysis import Analysis, analyze_run
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
    table, content = make_fastest_table(analysis), collect_answers(analysis)
    assert table is not None
    yield " ".join(table.headings)
    yield from (" ".join(row) for row in table.format_rows())
    for name in ("findings", "unknowns", "certainties"):
        yield from (f"{answer.title}. {answer.text}" for answer in content[name])
    yield table.remark


def test_the_first_words_are_few(words: str) -> None:
    assert len(words.split()) <= MOST_WORDS


@pytest.mark.parametrize(
    "answer",
    [
        r"inference of vgg16 \(batches 1 and 64, 224 px, 10 classes\); fp32, synthetic data",
        r"through Keras: TensorFlow graph, eager and compiled; JAX compiled",
        r"54 of 54 planned repeats ended ok",
        r"54 valid; 3 count in each cell, of \d+ to \d+ steps a repeat, [\d.]+ to [\d.]+ s\. Valid: on the device",
        r"does not say that nobody else used the GPU, which was not visible",
        r"Was it idle: whether others used the GPU was not visible in 54 of 54 repeats",
        r"vgg16 infer, GPU, batch 64, 224 px TensorFlow graph 40\.\d+ [\d,]+ TensorFlow compiled 1\.\d % longer",
        r"resnet18 train, GPU, batch 64, 224 px PyTorch eager \([\d.]+ ms\) or JAX compiled \([\d.]+ ms\)",
        r"PyTorch eager would take 18 % longer\. None of 2 comparisons here shows that: TensorFlow graph takes 21 %",
        r"92 % longer \(79 to 106\) in cyclegan train",
        r"JAX compiled takes 4\.5 % longer \([\d.]+ to [\d.]+\) in vgg16 train; no difference shown in resnet18 train",
        r"compiled against eager: eager takes 17\.4 % longer",
        r"Only vgg16 infer has several batches",
        r"vgg16 train has the largest tensors on the GPU: 9\.20 GiB \(PyTorch eager\), 8\.04 GiB \(TensorFlow",
        r"34 of 48 combinations .* inference of conv6, resnet18 and cyclegan in any framework; PyTorch compiled",
        r"GPU, not CPU\), one precision \(fp32, not tf32, fp16 or bf16\) and one batch of conv6 train, vgg16 train,",
        r"What this costs is not known, as no price was given: benchmatrix cost study-h200-2",
        r"one card \(NVIDIA H200\): by how much others of the kind differ is not known",
        r"conv6 train, TensorFlow graph, 1 of 3 takes 13 % longer than the others",
    ],
)
def test_what_a_stranger_asks_is_in_them(words: str, answer: str) -> None:
    assert re.search(answer, words), answer


def test_no_mode_is_named_that_was_not_run_and_no_pair_has_a_second_number(words: str) -> None:
    assert "fused-norm" not in words
    # The pair of TensorFlow's graph and PyTorch at batch 64, as a share of the other time and as a ratio.
    assert not re.search(r"1\.3\d? % (lower|faster)|0\.98\d", words)

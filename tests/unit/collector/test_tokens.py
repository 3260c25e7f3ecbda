"""Language models: what a million tokens cost, time to first token, tokens a joule, the front, worked out by hand."""

from typing import Any

import pandas as pd
import pytest

from bench.errors import UserError
from bench.schema import Cell, PipelinedWindow
from bench.schema.measurement import PrecisionError
from collector.analysis import analyze_run
from collector.costs.document import CostDocument, list_tables
from collector.costs.evaluation import CostQuestion, evaluate_costs, find_job
from collector.grid import format_figure, make_grid
from collector.report.figures import find_front, show_tokens
from collector.results.collection import Collection
from collector.tables.cells import make_language_table, tabulate_tokens
from collector.tables.comparisons import make_ranking_table
from factories import (
    make_cell,
    make_cpu_use,
    make_environment,
    make_failed_result,
    make_gpu,
    make_gpu_use,
    make_memory,
    make_result,
    make_validity,
)
from measured_runs import Collect, make_repeats
from price_tables import make_price, make_price_table

PRICES = make_price_table(make_price("box", 0.002, gpu="T4"))  # of a second
P4 = make_gpu(name="Tesla P4")
GPU: dict[str, Any] = {"environment": make_environment(gpus=(make_gpu(),)), "gpu_use": (make_gpu_use(),)}
TOKENS = {"device": "gpu", "model": "llama-tiny", "input_size": 256, "num_classes": None}


def make_decoder(phase: str, batch_size: int, **fields: Any) -> Cell:
    return make_cell(**TOKENS | {"phase": phase, "batch_size": batch_size} | fields)


@pytest.fixture
def run(collect: Collect) -> Collection:
    """Prefill of 4 x 256 tokens in 40 ms, decoding of 4 sequences in 10 ms, of 16 in 20 ms, of 64 in 90 ms, once."""
    memory = make_memory(peak_memory_allocated_bytes=2**30)
    times = {("prefill", 4): 0.04, ("decode", 4): 0.01, ("decode", 16): 0.02}
    others = {"memory": memory, "pipelined": PipelinedWindow(num_steps=100, seconds=0.8), **GPU}
    results = [
        make_repeats(make_decoder(*key, max_warmup_seconds=1.0 + time), *[time] * 3, **others)  # paired nonetheless
        for key, time in times.items()
    ]
    return collect(*sum(results, []), *make_repeats(make_decoder("decode", 64), 0.09, **GPU))


def ask(collection: Collection, **question: Any) -> CostDocument:
    return evaluate_costs([collection], PRICES, CostQuestion(**question))


def test_a_million_tokens_in_and_out_have_a_price_and_an_energy(run: Collection) -> None:
    document = ask(run)
    cells = document.cells
    seconds = [0.04e6 / (4 * 256), 0.01e6 / 4, 0.02e6 / 16, 0.09e6 / 64]
    costs = [cell.offers[0].cost_per_million_tokens for cell in cells]
    assert [cost and cost.value for cost in costs] == pytest.approx([0.002 * time for time in seconds])
    assert [cell.tokens for cell in cells] == ["in", "out", "out", "out"]
    # 180 J in 30 steps; 360 g/kWh with a PUE of 1.25.
    joules = cells[1].energy and cells[1].energy.joules_per_million_tokens
    co2 = cells[1].offers[0].co2_grams_per_million_tokens
    assert (joules and joules.value, co2 and co2.value) == pytest.approx((1.5e6, 1.5e6 * 1.25 * 360 / 3.6e6))
    assert [table.caption for table in list_tables(document)] == ["Cost, energy and CO2 of a million tokens"]
    cheapest = make_ranking_table(analyze_run(run, prices=PRICES)).format_rows()[0][1]
    assert cheapest.endswith("0.0781 EUR for a million tokens in on X north box (T4)")


def test_the_cheapest_million_tokens_in_steps_of_so_many_milliseconds(run: Collection) -> None:
    document = ask(run, max_step_seconds=0.025)
    assert [cell.step_seconds.value for cell in document.cells] == pytest.approx([0.04, 0.01, 0.02])
    prefill, decode = sorted(document.choices, key=lambda choice: "prefill" not in choice.work)
    assert decode.sentence.endswith(
        "the cheapest in steps of at most 25 ms is X north box (T4) with llama-tiny decode, GPU, batch 16, 256 tokens, "
        "PyTorch eager: 20.0 (20.0 to 20.0) ms a step, 2.50 (2.50 to 2.50) EUR for a million tokens out"
    )
    assert ": the cheapest that was measured is X north box (T4) with" in prefill.sentence
    known = ask(run, max_step_seconds=0.1).assumptions[0]
    assert known.startswith("3 of 4 cells count")
    assert known.endswith("as one repeat gives no interval; prompts (prefill) are not held to it.")


def test_a_data_set_has_no_tokens(run: Collection, collect: Collect) -> None:
    with pytest.raises(UserError, match="--dataset cifar10: a data set has samples, and all cells of these runs are"):
        ask(run, job=find_job("cifar10"))
    conv6, decoder = (
        make_repeats(make_cell(device="gpu"), 0.1, 0.1, **GPU),
        make_repeats(make_decoder("decode", 4), 0.1),
    )
    document = ask(collect(*conv6, *decoder), job=find_job("cifar10"), deadline_seconds=1e6)
    assert [cell.seconds_of_job is None for cell in document.cells] == [False, True]
    assert [choice.work for choice in document.choices] == ["conv6 train, 32 px, fp32"]
    assert any(text.startswith("The job is without 1 cell of language models") for text in document.assumptions)


def test_the_table_of_language_models(run: Collection) -> None:
    analysis = analyze_run(run)
    table, figures = make_language_table(analysis), tabulate_tokens(analysis.summary, analysis.collection)
    prefill, decode, *_ = (dict(zip(table.headings, row, strict=True)) for row in table.format_rows())
    assert (figures["tokens_per_s_low"] * figures["interval_high_seconds"]).iloc[1] == pytest.approx(4, rel=1e-10)
    assert figures["time_per_output_token_seconds_low"].iloc[1] == figures["interval_low_seconds"].iloc[1]
    assert figures["time_per_output_token_seconds"].isna().tolist() == [True, False, False, False]
    assert (prefill["tokens/s"], prefill["each sequence, tokens/s"]) == ("25,600", "6,400")
    assert [row["pipelined, tokens/s"] for row in (prefill, decode)] == ["128,000", "500.0"]
    assert (decode["tokens/s"], decode["each sequence, tokens/s"]) == ("400.0", "100.0")
    assert [row["time to first token, ms"] for row in (prefill, decode)] == ["50.0", "50.0"]
    # 6 J a step of 4 tokens; keys and values of 4 layers, 128 wide, in float32, of 4 x 256 tokens.
    assert (decode["tokens/s/W"], decode["a million tokens, J"]) == ("0.667", "1,500,000")
    assert (decode["KV cache, MiB"], decode["peak memory, GiB"]) == (f"{2 * 4 * 128 * 4 * 1024 / 2**20:.2f}", "1.00")


def test_a_speed_in_few_bits_stands_beside_its_error_of_whichever_repeat_has_it(collect: Collect) -> None:
    error = PrecisionError(relative_error=0.0123, equal_token_share=0.977, num_tokens=128)
    cells = [make_decoder("decode", 4, precision=name) for name in ("fp32", "fp16", "bf16")]
    first = make_result(cells[2], precision_error=error, validity=make_validity("contaminated"), **GPU)
    others = [make_result(cell, repeat=number, **GPU) for number, cell in zip((1, 1, 2), cells, strict=True)]
    late = make_result(cells[2], repeat=3, precision_error=error.model_copy(update={"relative_error": 1.0}), **GPU)
    failed = make_failed_result(make_decoder("decode", 8))
    elsewhere = make_result(make_decoder("prefill", 4), **GPU | {"environment": make_environment(gpus=(P4,))})
    table = make_language_table(analyze_run(collect(first, *others, late, failed, elsewhere)))
    assert "time to first token, ms" not in table.headings
    texts = [row[table.headings.index("error against float64")] for row in table.format_rows()]
    assert [row[table.headings.index("KV cache, MiB")] for row in table.format_rows()] == 2 * ["4.00"] + 2 * ["2.00"]
    assert texts == ["–", "–", "error not measured", "0.0123, 97.7 % of tokens equal"]


def test_the_grid_counts_tokens(run: Collection, collect: Collect) -> None:
    grid = make_grid(analyze_run(run, prices=PRICES))
    place = grid.places["llama-tiny prefill, batch 4", grid.programs[0]]
    shown = [(metric.title, metric.unit.label, format_figure(metric, place.row)) for metric in grid.metrics]
    assert shown[1] == ("throughput", "tokens/s", "25,600")
    assert shown[3:] == [
        ("energy of a million tokens (GPU)", "J", "5,860"),
        ("cost of a million tokens (cheapest machine)", "EUR", "0.0781"),
    ]
    used: dict[str, Any] = {"cpu_use": make_cpu_use(energy_joules=9.0), "memory": make_memory()}
    decoder = make_repeats(make_decoder("decode", 4, device="cpu"), 0.1, **used)
    mixed = analyze_run(collect(*make_repeats(make_cell(), 0.1), *decoder))
    assert make_grid(mixed).metrics[1].unit.label == "samples/s or tokens/s"
    assert {"tokens/s/W", "peak memory, GiB"} <= {*make_language_table(mixed).headings}


def test_the_front_has_what_nothing_beats_in_both(run: Collection) -> None:
    rows = [("a", 1.0, 10.0, True), ("a", 2.0, 30.0, True), ("a", 2.0, 20.0, True), ("a", 3.0, 25.0, True)]
    rows += [("a", 0.5, 99.0, False), ("a", 4.0, 31.0, True), ("b", 9.0, 1.0, True)]
    frame = pd.DataFrame(rows, columns=["panel", "ms", "tokens", "is_sound"])
    assert find_front(frame).tolist() == [True, True, False, False, False, True, True]
    (panel,) = show_tokens(analyze_run(run)).figures
    assert panel.title == "llama-tiny decode, GPU, 256 tokens, Tesla T4, fp32"
    assert "PyTorch eager, fp32, batch 16: 800 tokens/s at 20 ms a token, on the Pareto front" in panel.description

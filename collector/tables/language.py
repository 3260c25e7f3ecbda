"""The figures of language models: tokens a second, time to first token, energy and memory, of prefill and decoding."""

import pandas as pd

from bench.registry import DECODERS, ELEMENT_BYTES
from collector.analysis import Analysis
from collector.cell_words import TOKEN_PHASES, count_tokens
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, Columns, Row, group_rows, list_rows, make_frame
from collector.results.summary import average_energies
from collector.tables.cells import NOTE, REPEATS, VERDICT, make_pipelined_columns, time_columns
from collector.tables.table import CELL, Column, Table, make_table, number_column
from collector.units import (
    JOULE,
    MILLISECOND,
    NOT_THERE,
    NUM_TIME_DIGITS,
    PERCENT,
    TOKENS,
    TOKENS_PER_JOULE,
    choose_memory_unit,
    format_number,
    format_significant,
)

IDENTITY = (
    *("run_id", "cell_id", "environment_id", "gpu_name", "cpu_model", "num_threads"),
    *("model", "phase", "framework", "mode", "precision", "batch_size", "input_size"),
)
ENDS = ("", "_low", "_high")
RATES, TIMES = ([name + end for end in ENDS] for name in ("tokens_per_s", "time_per_output_token_seconds"))
TOKEN_COLUMNS: Columns = {
    **dict.fromkeys((*RATES, "sequence_tokens_per_s", "pipelined_tokens_per_s"), "float64"),
    **dict.fromkeys(("time_to_first_token_seconds", *TIMES), "float64"),
    **dict.fromkeys(("tokens_per_s_per_watt", "joules_per_million_tokens"), "float64"),
    **dict.fromkeys(("kv_cache_bytes", "peak_memory_bytes"), "Int64"),
}
"""What `tabulate_tokens` computes of a cell (docs/report.md says how), with intervals from that of the step time."""
ERRORS = ("logit_error", "equal_token_share")
"""How far the precision is from float64, by any repeat that measured it: conditions do not change it."""
PAIRED = (*(name for name in CELL_COLUMNS if name not in ("phase", *PROTOCOL_FIELDS)), "hardware_id")
"""What is equal in a prefill and the decoding behind it."""
REMARK = (
    "The step time of decoding is the time per output token. Tokens/s counts the tokens of the prompts in prefill, "
    "and those that come out in decoding, of all sequences together. Time to first token is a step of prefill plus one "
    "of decoding, of cells that differ in nothing else. Tokens/s/W is tokens per joule. The KV cache is computed: 2 x "
    "layers x width of the keys x bytes x batch x context. Peak memory is measured: on a GPU what the framework's "
    "allocator held, else what the process held."
)


def tabulate_tokens(summary: pd.DataFrame, collection: Collection) -> pd.DataFrame:
    """Return the rows of the summary that are of language models and have figures, with TOKEN_COLUMNS.

    A figure that was not measured is missing; so is the time to first token if the run has no cell of the other phase.
    """
    chosen = summary[summary["phase"].isin(TOKEN_PHASES) & (summary["num_ok"] > 0)]
    rows = list_rows(average_energies(chosen, collection))
    halves = group_rows(rows, PAIRED)
    errors = collection.results.groupby("cell_id")[list(ERRORS)].first()
    chosen = chosen.assign(**{name: chosen["cell_id"].map(errors[name]) for name in ERRORS})
    figures = [_describe(row, halves[tuple(row[name] for name in PAIRED)]) for row in rows]
    return pd.concat([chosen, make_frame(figures, TOKEN_COLUMNS).set_axis(chosen.index)], axis="columns")


def _describe(row: Row, halves: list[Row]) -> Row:
    """Return the values of TOKEN_COLUMNS; `halves`: the rows that differ from this one at most in the phase.

    Times to first token and per output token are those of MLPerf Inference, without the wait for a server. The cache
    holds a key and a value for each layer, position and head of the keys (arXiv 2305.13245).
    """
    is_gpu, tokens, batch_size = row["device"] == "gpu", count_tokens(row), row["batch_size"]
    seconds, *ends = (row[name] for name in ("center_step_seconds", "interval_low_seconds", "interval_high_seconds"))
    rates = [time and batch_size * tokens / time for time in (seconds, *reversed(ends))]
    found: Row = dict(zip(RATES, rates, strict=True)) | {"sequence_tokens_per_s": tokens / seconds}
    if (rate := row["pipelined_samples_per_s"]) is not None:
        found["pipelined_tokens_per_s"] = rate * tokens
    if row["phase"] == "decode":
        found |= zip(TIMES, (seconds, *ends), strict=True)
    if sorted(one["phase"] for one in halves) == sorted(TOKEN_PHASES):
        found["time_to_first_token_seconds"] = sum(one["center_step_seconds"] for one in halves)
    if joules := row["gpu_energy_per_sample_joules" if is_gpu else "cpu_energy_per_sample_joules"]:
        found |= {"tokens_per_s_per_watt": tokens / joules, "joules_per_million_tokens": 1e6 * joules / tokens}
    if shape := DECODERS.get(row["model"]):
        num_values = shape.count_cached_values(batch_size * row["input_size"])
        found["kv_cache_bytes"] = num_values * ELEMENT_BYTES[row["precision"]]
    return found | {"peak_memory_bytes": row["peak_memory_allocated_bytes" if is_gpu else "peak_rss_bytes"]}


def describe_error(error: float, share: float, precision: str) -> str:
    """Return `0.0123, 97.7 % of tokens equal`, or that it was not measured if the precision has 16 bits or fewer."""
    if pd.isna(error):
        return NOT_THERE if precision in ("fp32", "tf32") else "error not measured"
    return f"{format_significant(error)}, {format_number(share, PERCENT)} % of tokens equal"


def make_language_table(analysis: Analysis) -> Table:
    rows = tabulate_tokens(analysis.summary, analysis.collection)
    cache, peak = (choose_memory_unit(rows[name].dropna()) for name in ("kv_cache_bytes", "peak_memory_bytes"))
    columns = [
        CELL,
        *time_columns("step time", num_digits=NUM_TIME_DIGITS)[:2],
        number_column("", "tokens_per_s", TOKENS),
        number_column("each sequence", "sequence_tokens_per_s", TOKENS),
        *make_pipelined_columns(rows, "pipelined_tokens_per_s", TOKENS),
        Column(title="error against float64", sources=(*ERRORS, "precision"), format=describe_error),
        number_column("time to first token", "time_to_first_token_seconds", MILLISECOND, is_optional=True),
        number_column("", "tokens_per_s_per_watt", TOKENS_PER_JOULE, is_optional=True),
        number_column("a million tokens", "joules_per_million_tokens", JOULE, is_optional=True),
        number_column("KV cache", "kv_cache_bytes", cache, is_optional=True),
        number_column("peak memory", "peak_memory_bytes", peak, is_optional=True),
        REPEATS,
        VERDICT,
        NOTE,
    ]
    return make_table("Language models: prefill and decoding", columns, rows, remark=REMARK)

"""The tables of cells: step times, tokens, memory, durations, what devices did, and what does not count."""

from dataclasses import replace
from functools import partial

import pandas as pd

from bench.registry import DECODERS, ELEMENT_BYTES
from bench.schema import Phase
from collector import units
from collector.analysis import Analysis
from collector.cell_words import TOKEN_PHASES, count_tokens, take_images
from collector.labels import add_labels
from collector.results.collection import Collection
from collector.results.frames import (
    CELL_COLUMNS,
    PROTOCOL_FIELDS,
    Columns,
    Row,
    describe_cell,
    find_shared,
    group_rows,
    list_rows,
    make_frame,
)
from collector.results.summary import NO, average_energies, list_failures, list_invalid, list_skipped
from collector.tables.environments import NOT_RECORDED
from collector.tables.table import (
    CELL,
    Column,
    Table,
    count_column,
    interval_column,
    make_table,
    number_column,
    select_known,
    text_column,
)
from collector.units import (
    Unit,
    choose_memory_unit,
    choose_rate_unit,
    format_interval,
    format_number,
    format_significant,
    join_words,
    list_some,
)


def describe_validity(num_ok: int, num_sound: int, verdicts: str) -> str:
    """Say in a few words how many repeats count, and which of those that ended ok have another verdict than `valid`.

    `valid` where none has; else as `3 of 3 count; 2 noisy`. A dash if none ended ok.
    """
    if not num_ok:
        return units.NOT_THERE
    if not verdicts:
        return "valid"
    if not num_sound:
        return f"none of {num_ok} sound; {verdicts}"
    return f"{num_sound} of {num_ok} {'counts' if num_sound == 1 else 'count'}; {verdicts}"


# Below it the two figures say the same: repeats differ by as much.
MIN_PIPELINED_DIFFERENCE = 0.02
PIPELINED_REMARK = (
    "Step time, latency and throughput are those of steps that are waited for one by one. Pipelined are steps that run "
    "back to back with one synchronisation at the end, as people train: the next step is launched while the device "
    "works on the last."
)
TENANTS_REMARK = "Of a cell with tenants, the steps are those of its first one while the others ran: see Sharing."
REPEATS = Column(
    title="repeats ok",
    sources=("num_ok", "num_planned"),
    format=lambda num_ok, num_planned: f"{num_ok} of {num_planned}",
    align="right",
)
VERDICT = Column(title="verdict", sources=("num_ok", "num_sound", "faults"), format=describe_validity)
NOTE = replace(text_column("note", "note", is_optional=True), is_note=True)


def make_training_table(analysis: Analysis) -> Table:
    return _make_phase_table(analysis, "train", "Training: time of one step")


def make_inference_table(analysis: Analysis) -> Table:
    percentiles = (number_column(name, f"{name}_step_seconds", units.MILLISECOND) for name in ("p95", "p99"))
    return _make_phase_table(analysis, "infer", "Inference: latency of one batch", *percentiles)


def make_pipelined_columns(rows: pd.DataFrame, name: str, rate: Unit) -> list[Column]:
    """Return the columns of steps that ran back to back; none where they took what synchronised ones did."""
    differences = (rows["pipelined_step_seconds"] / rows["center_step_seconds"] - 1).abs()
    if not (differences > MIN_PIPELINED_DIFFERENCE).any():
        return []
    return [
        number_column("pipelined step", "pipelined_step_seconds", units.MILLISECOND, num_digits=units.NUM_TIME_DIGITS),
        number_column("pipelined", name, rate),
    ]


def time_columns(title: str, *, num_digits: int = units.NUM_DIGITS) -> list[Column]:
    """Return the columns of the step time, called `title`, its interval and the quartiles of the steps."""
    ends = ("interval_low_seconds", "interval_high_seconds")
    return [
        Column(
            title=title,
            sources=("center_step_seconds", "least_repeat_seconds", "most_repeat_seconds", "disagreement"),
            format=partial(_format_cell_time, num_digits=num_digits),
            unit=units.MILLISECOND,
            align="right",
            is_finding=True,
        ),
        interval_column("95 % interval", *ends, units.MILLISECOND, num_digits=num_digits),
        interval_column("IQR of steps", "q1_step_seconds", "q3_step_seconds", units.MILLISECOND, priority=1),
    ]


def _make_phase_table(analysis: Analysis, phase: Phase, caption: str, *percentiles: Column) -> Table:
    rows: pd.DataFrame = analysis.summary[analysis.summary["phase"] == phase]
    pipelined = make_pipelined_columns(rows, "pipelined_samples_per_s", units.THROUGHPUT)
    columns = [
        CELL,
        *time_columns("step time", num_digits=units.NUM_TIME_DIGITS),
        *percentiles,
        number_column("", "throughput_samples_per_s", units.THROUGHPUT, priority=4),
        *pipelined,
        number_column("waiting for data", "data_wait_share", units.PERCENT, is_optional=True),
        count_column("timed steps", "num_steps_taken"),
        REPEATS,
        VERDICT,
        NOTE,
    ]
    remarks = [PIPELINED_REMARK if pipelined else "", TENANTS_REMARK if find_shared(rows).any() else ""]
    return make_table(caption, columns, rows, remark=" ".join(filter(None, remarks)))


def _format_cell_time(seconds: float, least: float, most: float, disagreement: object, *, num_digits: int) -> str:
    """Return `24.34`, or `63.98 (61.3 to 69.6 ms, repeats disagree)` of a mean that no repeat had."""
    text = format_number(seconds, units.MILLISECOND, num_digits)
    if not isinstance(disagreement, str) or not disagreement:
        return text
    return f"{text} ({format_interval(least, most, units.MILLISECOND)} ms, repeats disagree)"


def describe_settling(flat_after_seconds: float, sustained_seconds: float) -> str:
    """Return from when on the speed was flat, in seconds, or that it was not."""
    seconds = format_number(sustained_seconds, units.SECOND)
    if pd.isna(flat_after_seconds):
        return f"not within {seconds} s"
    return f"{format_number(flat_after_seconds, units.SECOND)} s, of {seconds} s"


SUSTAINED_COLUMNS = [
    number_column("step at first", "first_sustained_step_seconds", units.MILLISECOND),
    number_column("step at last", "settled_step_seconds", units.MILLISECOND),
    number_column("last / first", "sustained_ratio", units.RATIO),
    Column(title="flat after", sources=("flat_after_seconds", "sustained_seconds"), format=describe_settling),
]


def make_sustained_table(analysis: Analysis) -> Table:
    summary = analysis.summary
    ratio = summary["settled_step_seconds"] / summary["first_sustained_step_seconds"]
    rows = select_known(summary.assign(sustained_ratio=ratio), SUSTAINED_COLUMNS[:2])
    caption = "Sustained speed: the first and the last seconds of steps that ran on, medians of the repeats that count"
    return make_table(caption, [CELL, *SUSTAINED_COLUMNS], rows)


def make_durations_table(analysis: Analysis) -> Table:
    titles = {
        "import": "import",
        "build": "build",
        "first_step": "first step",
        "warmup": "warm-up",
        "steady": "timed window",
        "cold_start": "cold start",
        "warm_start": "warm start",
    }
    columns = [
        number_column(title, f"{name}_seconds", units.SECOND, is_optional=name.endswith("_start"))
        for name, title in titles.items()
    ]
    caption = "Durations within a repeat, medians of the repeats that count"
    remark = "A start is import, build and first step: cold where no compiled program was loaded, warm where all were."
    return make_table(caption, [CELL, *columns], analysis.measured, remark=remark)


MEMORY_TITLES = {
    "peak_rss_bytes": "process, peak resident",
    "peak_cgroup_bytes": "cgroup, peak",
    "peak_memory_allocated_bytes": "GPU, peak allocated for tensors",
    "peak_memory_reserved_bytes": "GPU, peak reserved",
    "gpu_memory_before_bytes": "device, before",
    "gpu_memory_peak_bytes": "device, peak in use",
}
MEMORY_REMARK = (
    "For tensors: what the framework's allocator held at most; for JAX, what XLA plans for the step. In use on the "
    "device: all of it, with the driver, the context, libraries and what the framework keeps for later, as seen while "
    "the GPU was sampled. Tensors that fit a card do not show that the whole run fits it."
)


def make_memory_table(analysis: Analysis) -> Table:
    rows = analysis.measured
    unit = choose_memory_unit(rows[list(MEMORY_TITLES)].max().dropna())
    titles, cgroups = dict(MEMORY_TITLES), rows["peak_cgroup_bytes"]
    # The kernel keeps the peak since the cgroup was created: where all cells say the same, theirs, such as a
    # container's, is older than each of them, and the figure is of none.
    if cgroups.count() > 1 and cgroups.nunique() == 1:
        del titles["peak_cgroup_bytes"]
    peaks = [number_column(title, name, unit, is_optional=True) for name, title in titles.items()]
    has_gpu = rows["peak_memory_allocated_bytes"].notna().any()
    caption = "Peak memory, the largest of the repeats that count"
    return make_table(caption, [CELL, *peaks], rows, remark=MEMORY_REMARK if has_gpu else "")


NEAR_SHARE = 0.5
"""From here on a step spends most of its time on what the roof counts, if it runs at the roof's rate. Below, the longer
part of the time is something else, which the roof does not name."""
ROOFLINE_CAPTION = "Roofline: the arithmetic of a step, and how near it came to what the device can do"
WINOGRAD_REMARK = "Convolutions are counted as direct ones; with Winograd's more than 100 % can be right. "
ROOFLINE_REMARK = (
    "The nearest roof is the one that a perfect program would meet first: the peak of arithmetic, or the bandwidth for "
    "the least bytes. It limits a cell that reaches at least half of it. "
    "Below half it does not say what does: launches, the host, more bytes than the least, or other operations. The "
    "row of a cell with tenants is of one of them: the others take their part of the device."
)


def make_roofline_table(analysis: Analysis) -> Table:
    rows = analysis.summary[analysis.summary["flops_per_step"].notna()]
    unit = choose_rate_unit(rows[["achieved_flops_per_second", "peak_flops_per_second"]].max().dropna())
    columns = [
        CELL,
        number_column("FLOP count", "flops_per_step", units.GFLOP),
        number_column("achieved", "achieved_flops_per_second", unit),
        number_column("peak", "peak_flops_per_second", unit),
        number_column("of peak", "share_of_peak", units.PERCENT),
        text_column("nearest roof", "bound"),
        number_column("least time under it", "min_step_seconds", units.MILLISECOND),
        number_column("of that roof", "share_of_roofline", units.PERCENT),
        Column(title="limited by", sources=("bound", "share_of_roofline"), format=describe_limit),
        text_column("peak from", "peak_source"),
    ]
    remark = WINOGRAD_REMARK * take_images(rows["model"]) + ROOFLINE_REMARK
    return make_table(ROOFLINE_CAPTION, columns, rows, remark=remark)


def describe_limit(roof: str, share: float) -> str:
    """Return what limits a cell that reaches `share` of its nearest roof, as far as that says it."""
    if pd.isna(share) or pd.isna(roof):
        return units.NOT_THERE
    return str(roof) if share >= NEAR_SHARE else "not known"


ENERGY_COLUMNS = [
    number_column("GPU idle", "gpu_idle_power_watts", units.WATT, is_optional=True),
    number_column("GPU mean", "gpu_mean_power_watts", units.WATT, is_optional=True),
    number_column("GPU per step", "gpu_energy_per_step_joules", units.JOULE, is_optional=True),
    number_column("GPU per sample", "gpu_energy_per_sample_joules", units.JOULE, is_optional=True),
    number_column("CPU sockets per sample", "cpu_energy_per_sample_joules", units.JOULE, is_optional=True),
]


def make_energy_table(analysis: Analysis) -> Table:
    rows = select_known(average_energies(analysis.summary, analysis.collection), ENERGY_COLUMNS)
    caption = "Power, medians, and energy, geometric means of the repeats that count"
    return make_table(caption, [CELL, *ENERGY_COLUMNS], rows)


# Below half, the GPU waits longer than it works: kernels that took no time at all would not make the step twice as
# fast.
LAUNCH_BOUND_SHARE = 0.5
KERNEL_REMARK = (
    f"Kernel time: the time of a step in which at least one kernel or copy ran on the busiest GPU, seen by the "
    f"framework's profiler in a pass of its own. Busy: kernel time over the step time, which was taken without the "
    f"profiler; below {LAUNCH_BOUND_SHARE:.0%} the cell is called launch-bound: the GPU waits longer for the host than "
    f"it works."
)
KERNEL_COLUMNS = [
    CELL,
    number_column("step time", "center_step_seconds", units.MILLISECOND),
    number_column("kernel time", "kernel_seconds_per_step", units.MILLISECOND),
    number_column("busy", "kernel_busy_share", units.PERCENT),
    number_column("kernels per step", "kernels_per_step", units.RATIO),
    number_column("copies per step", "copies_per_step", units.RATIO),
    number_column("step under the profiler", "profiled_step_seconds", units.MILLISECOND),
    text_column("note", "limit", is_optional=True),
]


def make_kernel_time_table(analysis: Analysis) -> Table:
    rows = analysis.summary[analysis.summary["kernel_busy_share"].notna()]
    limits = pd.Series("launch-bound", rows.index).mask(rows["data_dir"].notna(), "waits for launches or data")
    shown = rows.assign(limit=limits.where(rows["kernel_busy_share"] < LAUNCH_BOUND_SHARE, ""))
    return make_table("Where the time of a step on a GPU goes", KERNEL_COLUMNS, shown, remark=KERNEL_REMARK)


DEVICE_COLUMNS = [
    number_column("own use", "cpu_own_cores", units.CORES, is_optional=True),
    number_column("others' use", "cpu_other_cores", units.CORES, is_optional=True),
    number_column("the machine has", "num_machine_cores", units.CORES, is_optional=True),
    number_column("quota used up", "cpu_throttled_share", units.PERCENT, is_optional=True),
    number_column("SM clock, median", "gpu_sm_clock_mhz", units.MEGAHERTZ, is_optional=True),
    number_column("SM clock of its maximum", "gpu_sm_clock_share", units.PERCENT, is_optional=True),
    number_column("power limit", "gpu_power_limit_watts", units.WATT, is_optional=True),
    number_column("hottest", "gpu_max_temperature_celsius", units.CELSIUS, is_optional=True),
]


def _describe_reasons(reasons: str | None, device: str) -> str:
    """Return why the clock of a GPU was held down; what was not read is not known, and no sign of none."""
    if device != "gpu":
        return units.NOT_THERE
    return NOT_RECORDED if pd.isna(reasons) else str(reasons)


HELD_DOWN_BY = Column(title="clock held down by", sources=("gpu_throttle_reasons", "device"), format=_describe_reasons)


def make_devices_table(analysis: Analysis) -> Table:
    rows = select_known(analysis.summary, DEVICE_COLUMNS)
    caption = "Use of CPUs and GPUs while it was measured, medians of the repeats that count"
    has_gpu = bool((rows["device"] == "gpu").any())
    return make_table(caption, [CELL, *DEVICE_COLUMNS, *([HELD_DOWN_BY] if has_gpu else [])], rows)


TOKEN_IDENTITY = (
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
LANGUAGE_REMARK = (
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
    figures = [_describe_tokens(row, halves[tuple(row[name] for name in PAIRED)]) for row in rows]
    return pd.concat([chosen, make_frame(figures, TOKEN_COLUMNS).set_axis(chosen.index)], axis="columns")


def _describe_tokens(row: Row, halves: list[Row]) -> Row:
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
        return units.NOT_THERE if precision in ("fp32", "tf32") else "error not measured"
    return f"{format_significant(error)}, {format_number(share, units.PERCENT)} % of tokens equal"


def make_language_table(analysis: Analysis) -> Table:
    rows = tabulate_tokens(analysis.summary, analysis.collection)
    cache, peak = (choose_memory_unit(rows[name].dropna()) for name in ("kv_cache_bytes", "peak_memory_bytes"))
    columns = [
        CELL,
        *time_columns("step time", num_digits=units.NUM_TIME_DIGITS)[:2],
        number_column("", "tokens_per_s", units.TOKENS),
        number_column("each sequence", "sequence_tokens_per_s", units.TOKENS),
        *make_pipelined_columns(rows, "pipelined_tokens_per_s", units.TOKENS),
        Column(title="error against float64", sources=(*ERRORS, "precision"), format=describe_error),
        number_column("time to first token", "time_to_first_token_seconds", units.MILLISECOND, is_optional=True),
        number_column("", "tokens_per_s_per_watt", units.TOKENS_PER_JOULE, is_optional=True),
        number_column("a million tokens", "joules_per_million_tokens", units.JOULE, is_optional=True),
        number_column("KV cache", "kv_cache_bytes", cache, is_optional=True),
        number_column("peak memory", "peak_memory_bytes", peak, is_optional=True),
        REPEATS,
        VERDICT,
        NOTE,
    ]
    return make_table("Language models: prefill and decoding", columns, rows, remark=LANGUAGE_REMARK)


MAX_STDERR_CHARACTERS = 4000
MAX_MEMBERS = 20
"""Cells that ended alike which are named."""


def make_failures_table(analysis: Analysis) -> Table:
    """Return the repeats that did not end ok, those that ended alike in one row.

    What they wrote is that of the first of them that wrote anything.
    """
    failures = _add_labels(list_failures(analysis.collection), analysis)
    failures = failures.assign(reason=[_describe_failure(row) for row in list_rows(failures)])
    rows = []
    for (status, reason), own in failures.groupby(["status", "reason"], sort=False):
        members = [
            f"{label}, repeat{'' if len(repeats) == 1 else 's'} {join_words(map(str, repeats))}"
            for (label, _), repeats in own.groupby(["label", "cell_id"], sort=False)["repeat"]
        ]
        wrote = own[own["stderr_tail"].fillna("") != ""].head(1)
        output = "".join(
            f"{row['label']}, repeat {row['repeat']}:\n{row['stderr_tail'][-MAX_STDERR_CHARACTERS:]}"
            for row in list_rows(wrote)
        )
        named = "; ".join(list_some(members, MAX_MEMBERS))
        rows.append((status, reason, len(own), named, output))
    names = ["status", "reason", "number", "members", "output"]
    columns = [
        text_column("status", "status"),
        text_column("reason", "reason"),
        count_column("repeats", "number"),
        text_column("of", "members"),
        text_column("what one wrote", "output", is_optional=True),
    ]
    frame = pd.DataFrame(rows, columns=names).sort_values("number", ascending=False, kind="stable")
    return make_table("Repeats that did not end ok", columns, frame)


def _describe_failure(row: Row) -> str:
    """Return the reason of a failure with what is known of the attempt that counts; most statuses say their kind."""
    kind = {"error_kind": "kind"} if row["status"] == "failed" else {}
    names = kind | {"exit_code": "exit code", "signal": "signal"}
    details = [f"{name} {row[field]}" for field, name in names.items() if not pd.isna(row[field])]
    if row["num_attempts"] > 1:
        details.append(f"the last of {row['num_attempts']} attempts")
    return f"{row['error_message']} ({', '.join(details)})" if details else str(row["error_message"])


def make_invalid_table(analysis: Analysis) -> Table:
    columns = [
        CELL,
        count_column("repeat", "repeat"),
        text_column("verdict", "verdict"),
        text_column("reasons", "verdict_reasons"),
    ]
    invalid = list_invalid(analysis.collection)
    labelled = _add_labels(invalid[invalid["counts"] == NO], analysis)
    return make_table("Repeats that ended ok and do not count", columns, labelled)


def _add_labels(repeats: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    """Return the repeats with the labels of their cells, which tell these from all others of the run."""
    labels = analysis.summary.drop_duplicates("cell_id").set_index("cell_id")["label"]
    return repeats.assign(label=repeats["cell_id"].map(labels))


def make_left_out_table(analysis: Analysis) -> Table:
    left_out = analysis.collection.run.left_out
    cells = add_labels(make_frame([describe_cell(entry.cell) for entry in left_out], CELL_COLUMNS))
    rows = cells.assign(reason=[entry.reason for entry in left_out])
    return make_table("Cells that cannot run here", [CELL, text_column("reason", "reason")], rows)


def make_skipped_table(analysis: Analysis) -> Table:
    skipped = list_skipped(analysis.collection)
    columns = [text_column("key", "key"), text_column("reason", "reason")]
    remark = f"{len(skipped)} of the keys under the run in the store did not count."
    return make_table("Documents that did not count", columns, skipped, remark=remark)

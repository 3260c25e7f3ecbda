"""The figures of the report: which questions they answer, of which cells, and the words around them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from string import Formatter
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from bench.schema import WHOLE_DEVICE
from collector.analysis import Analysis
from collector.batches import CARDS, CONTEXT_BYTES
from collector.cell_words import FRAMEWORK_NAMES, SHARING_NAMES, take_images
from collector.comparisons import DEVICES, FRAMEWORKS, MODES, PRECISIONS, STRONG_SCALING, WEAK_SCALING
from collector.labels import add_labels, label_hardware, label_panels, label_shared
from collector.ratio_words import take_joint_intervals
from collector.report.charts import (
    CROSS_CAPTION,
    LINE_BREAK,
    Figure,
    draw_cards,
    draw_level,
    plot_lines,
    plot_ratios,
    plot_roofline,
    plot_tokens,
    to_spec,
)
from collector.results.frames import Row, list_rows, select_alone
from collector.units import GIB, MILLISECOND, TFLOPS, count_things, format_number, format_significant

MAX_TOLD = 12
"""Points that the text of a plot names; a reader of texts has the table for the others."""


class Limit(NamedTuple):
    """How much a panel draws, the first ones: more would cover each other."""

    column: str
    """What counts as one thing: the rows with one value of this column."""
    most: int
    what: str


ROWS = Limit("row", 40, "rows, the first of the plan")
LINES = Limit("series", 8, "lines, the first by name")


@dataclass(frozen=True, kw_only=True)
class FigureGroup:
    """Holds the panels that answer one question, with the caption that says how to read them."""

    question: str
    caption: str
    figures: tuple[Figure, ...]


def show_panels(
    rows: pd.DataFrame,
    plot: Callable[[pd.DataFrame], alt.LayerChart],
    says: str,
    *,
    question: str,
    caption: str,
    value: str,
    limit: Limit | None = None,
) -> FigureGroup:
    """Return a group with a panel for each value of `panel` of `rows`; those without any `value` are left out.

    `says`: what a row says in words, with the names of columns in braces: `{name}: {ms} ms`.
    """
    known = rows[rows.groupby("panel")[value].transform("count") > 0] if len(rows) else rows
    if "series" in known:  # one has the same look in all panels
        known = known.assign(series=known["series"].astype("category"))
    figures = []
    for title, panel in known.groupby("panel", sort=False):
        shown, note = panel.assign(row=range(len(panel))), ""
        if limit is not None and shown[limit.column].nunique() > limit.most:
            things = list(dict.fromkeys(shown[limit.column]))
            shown = shown[shown[limit.column].isin(things[: limit.most])]
            note = f"Drawn are {limit.most} of {len(things):,} {limit.what}."
        description = " ".join(filter(None, [note, _describe_rows(shown, says)]))
        figures.append(Figure(title=str(title), spec=to_spec(plot(shown)), description=description, note=note))
    return FigureGroup(question=question, caption=caption, figures=tuple(figures))


def _describe_rows(rows: pd.DataFrame, says: str) -> str:
    """Return what the rows with a figure say, the first MAX_TOLD; those of no cell, where lines begin, say nothing."""
    names = [name for _, name, *_ in Formatter().parse(says) if name]
    told = rows.dropna(subset=[*names, *(["cell_id"] if "cell_id" in rows else [])])
    texts = list(
        dict.fromkeys(
            says.format_map({name: value if isinstance(value, str) else _write(value) for name, value in row.items()})
            for row in list_rows(told[names])
        )
    )
    more = f"; {len(texts) - MAX_TOLD} more in the table" if len(texts) > MAX_TOLD else ""
    return "; ".join(texts[:MAX_TOLD]) + more


def _write(value: float) -> str:
    """Return whole numbers with all digits, other numbers with three."""
    return f"{value:,.0f}" if float(value).is_integer() else format_significant(value)


def name_series(summary: pd.DataFrame) -> pd.DataFrame:
    """Return panel (work and device), series (what did it), framework, batch, precision, soundness and cell."""
    series = []
    for row in list_rows(summary[["framework", "mode", "precision", "num_gpus"]]):
        gpus = [count_things(row["num_gpus"], "GPU")] if row["num_gpus"] > 1 else []
        series.append(", ".join([f"{FRAMEWORK_NAMES[row['framework']]} {row['mode']}", row["precision"], *gpus]))
    hardware = name_devices(summary)
    panels = [f"{work}, {device}" for work, device in zip(label_panels(summary), hardware, strict=True)]
    named = summary[["cell_id", "batch_size", "precision"]]
    return named.assign(
        panel=panels,
        series=series,
        framework=summary["framework"].map(FRAMEWORK_NAMES),
        is_sound=summary["num_sound"] > 0,
    )


def name_devices(summary: pd.DataFrame) -> list[str]:
    """Return the device of each cell; of one without a figure that of the run's others, where they have only one."""
    rows = list_rows(summary[["device", "num_gpus", "gpu_name", "cpu_model", "num_threads", "num_ok"]])
    known = {(row["device"], row["num_gpus"]): set[str]() for row in rows}
    for row in rows:
        if row["num_ok"]:
            known[row["device"], row["num_gpus"]].add(_name_device(row))
    return [
        next(iter(names)) if not row["num_ok"] and len(names) == 1 else _name_device(row)
        for row in rows
        for names in [known[row["device"], row["num_gpus"]]]
    ]


def _name_device(row: Row) -> str:
    if row["device"] == "gpu":
        name: str = "GPU" if pd.isna(row["gpu_name"]) else row["gpu_name"]
        return f"{row['num_gpus']} x {name}" if row["num_gpus"] > 1 else name
    return label_hardware(row["cpu_model"], row["num_threads"]) or "CPU"


SOLD_AS = (
    f"All in GiB, of which a card has fewer than the GB that it is sold as: the {CARDS[0].name}, sold as "
    f"{CARDS[0].sold_as}, has {format_number(CARDS[0].total_bytes, GIB)} GiB by its driver."
)
UNSOUND_CAPTION = "A cross marks a ratio with a side that has no repeat under sound conditions."
ENDS = {"ratio": "ratio", "low": "ratio_low", "high": "ratio_high"}
"""The columns of a line with those of an estimate."""
ROOFLINE_CAPTION = (
    "Points: the FLOP count of a step over its time, at its FLOP count over the least bytes that it has to "
    "move. Both counts are by analysis, bytes as if caches were perfect, "
    "so a cell moves more bytes and stands further left. The programs of a work have one intensity, in the middle of "
    "where they stand beside each other; its name, with the batch, stands at the fastest of them. Lines: the peak of "
    "the device by precision, and its memory's bandwidth times the intensity where that is known. "
    f"{CROSS_CAPTION}"
)
WINOGRAD_CAPTION = (
    " Operations are those of direct convolutions; Winograd's algorithm needs fewer, so a point above its line can be "
    "right."
)


TIMES = {"ms": "center_step_seconds", "low": "interval_low_seconds", "high": "interval_high_seconds"}


def list_sound(pairs: pd.DataFrame) -> "pd.Series[bool]":
    return (pairs["num_sound_subject"] > 0) & (pairs["num_sound_reference"] > 0)


def show_latencies(analysis: Analysis) -> FigureGroup:
    summary = select_alone(analysis.summary)
    rows = name_series(summary).assign(**{name: summary[column] / MILLISECOND.size for name, column in TIMES.items()})
    several = rows.groupby(["panel", "series"])["batch_size"].transform("nunique") > 1
    make_y = partial(alt.Y, title="ms per step, log scale", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g"))
    return show_panels(
        rows[several],
        partial(plot_lines, x="batch_size", value="ms", make_y=make_y),
        "{series}, batch {batch_size}: {ms} ms",
        question="How does the time of a step grow with the batch?",
        caption=f"The step time with its 95 % interval; both axes are logarithmic. {CROSS_CAPTION}",
        value="ms",
        limit=LINES,
    )


def show_tokens(analysis: Analysis) -> FigureGroup:
    measured = select_alone(analysis.measured)
    measured = measured[measured["phase"] == "decode"]
    named = name_series(measured)
    rows = named.assign(
        panel=[", ".join(parts) for parts in zip(named["panel"], named["precision"], strict=True)],
        tokens=measured["throughput_samples_per_s"],
        **{name: measured[column] / MILLISECOND.size for name, column in TIMES.items()},
    )
    is_front = find_front(rows)
    rows = rows.assign(is_front=is_front, mark=is_front.map({True: ", on the Pareto front", False: ""}))
    return show_panels(
        rows[rows.groupby("panel")["batch_size"].transform("nunique") > 1],
        plot_tokens,
        "{series}, batch {batch_size}: {tokens} tokens/s at {ms} ms a token{mark}",
        question="How many tokens a second, at which time per token?",
        caption="Tokens/s of all sequences together over the time per output token, which is the step time with its "
        "95 % interval; the number is the batch, that is how many sequences are decoded at once. A ring, and the grey "
        "line, mark the Pareto front: no other point of the panel has as many tokens/s in as little time, by their "
        f"centres. Both axes are logarithmic. {CROSS_CAPTION}",
        value="tokens",
        limit=LINES,
    )


def find_front(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows are sound and have more tokens/s than every sound row of the panel that takes no longer."""
    sound = rows[rows["is_sound"]].sort_values(["panel", "ms", "tokens"], ascending=[True, True, False])
    most = sound.groupby("panel")["tokens"].cummax().groupby(sound["panel"]).shift(fill_value=0.0)
    return (sound["tokens"] > most).reindex(rows.index, fill_value=False)


def show_roofline(analysis: Analysis) -> FigureGroup:
    measured = select_alone(analysis.measured)
    measured = measured[measured["flops_per_step"].notna() & (measured["min_bytes_per_step"] > 0)]
    measured = measured[measured["achieved_flops_per_second"].notna()]
    rows = name_series(measured).assign(
        panel=name_devices(measured),
        name=measured["label"],
        work=measured["model"] + LINE_BREAK + measured["phase"] + ", " + measured["batch_size"].astype(str),
        intensity=measured["flops_per_step"].astype(float) / measured["min_bytes_per_step"].astype(float),
        tera=measured["achieved_flops_per_second"] / TFLOPS.size,
        peak=measured["peak_flops_per_second"],
        bandwidth=measured["peak_bytes_per_second"],
    )
    return show_panels(
        rows.drop(columns="series"),
        plot_roofline,
        "{name}: {tera} TFLOP/s at {intensity} FLOP/byte",
        question="How near does it come to what the device can do?",
        caption=ROOFLINE_CAPTION + WINOGRAD_CAPTION * take_images(measured["model"]),
        value="tera",
    )


def show_memory(analysis: Analysis) -> FigureGroup:
    summary = select_alone(analysis.summary)
    gpu = summary[(summary["device"] == "gpu") & (summary["num_gpus"] == 1)]
    gib = gpu["peak_memory_allocated_bytes"].astype("Float64").astype(float) / GIB.size
    in_use = gpu["gpu_memory_peak_bytes"].astype("Float64").astype(float) / GIB.size
    rows = name_series(gpu).assign(gib=gib, low=gib.where(in_use.notna()), high=in_use.clip(lower=gib))
    rows = rows[rows.groupby("panel")["gib"].transform("count") > 0]
    budgets = [card.find_budget(CONTEXT_BYTES) for card in CARDS]
    sizes = [format_number(budget, GIB) for budget in budgets]
    names = [f"{card.name}, {card.sold_as}: {size} GiB" for card, size in zip(CARDS, sizes, strict=True)]
    cards = pd.DataFrame({"card": names, "gib": [budget / GIB.size for budget in budgets]})
    scale = alt.Scale(type="log", nice=False, padding=12)  # a nice one would leave less room between the cards
    axis = alt.Axis(format="~g", labelOverlap="greedy", labelSeparation=4)
    make_y = partial(alt.Y, title="GiB, log scale", scale=scale, axis=axis)
    return show_panels(
        rows,
        partial(plot_lines, x="batch_size", value="gib", make_y=make_y, beneath=draw_cards(cards, make_y)),
        "{series}, batch {batch_size}: {gib} GiB",
        question="Which card do the tensors of a batch fit?",
        caption="Point: the peak of what the framework's allocator held for tensors, the largest of the repeats; of "
        "JAX what XLA plans for the step. Dashed lines: what a card leaves for tensors, less what the driver and a "
        f"CUDA context take. {SOLD_AS} A point below a line says that the tensors fit, not that the whole run does: "
        "that was measured on this card alone. Bar above the point: all that was in use on the device, driver and "
        "context included, so the lines are not for it. Both axes are "
        f"logarithmic. {CROSS_CAPTION}",
        value="gib",
        limit=LINES,
    )


def show_scaling(analysis: Analysis) -> FigureGroup:
    frames = []
    for comparison, words in ((WEAK_SCALING, "same batch per GPU"), (STRONG_SCALING, "same global batch")):
        pairs = analysis.comparisons[comparison.name]
        panels = [f"{panel}: {words}" for panel in label_panels(pairs)]
        frames.append(
            pairs.assign(
                panel=panels,
                series=label_shared(pairs, in_panel=True),
                num_gpus=pairs["num_gpus_subject"],
                is_sound=list_sound(pairs),
                **{name: 100 * pairs[column] for name, column in ENDS.items()},
            )[["panel", "series", "num_gpus", *ENDS, "is_sound", "cell_id_subject"]]
        )
    make_y = partial(alt.Y, title="% of linear", scale=alt.Scale(zero=True))
    return show_panels(
        pd.concat(frames, ignore_index=True),
        partial(plot_lines, x="num_gpus", value="ratio", make_y=make_y, beneath=[draw_level("ratio", 100, make_y)]),
        "{series}, {num_gpus} GPUs: {ratio} %",
        question="How far do more GPUs carry?",
        caption=f"Throughput of n GPUs over n times that of one, with its 95 % interval. {CROSS_CAPTION}",
        value="ratio",
        limit=LINES,
    )


VERDICT_CAPTION = "The colour is the verdict of the table; the intervals are those of the table, which hold together."


class Question(NamedTuple):
    """What the ratios of a comparison answer."""

    question: str
    caption: str
    of: str
    """What over what the ratio is."""
    side: str = "first"
    """The side that both answers are about."""
    above_is_better: bool = True


QUESTIONS: Mapping[str, Question] = {
    FRAMEWORKS.name: Question(
        question="Which framework is faster?",
        caption="The step time of the first framework over PyTorch's, with its 95 % interval. Left of 1 the "
        "first is faster.",
        of="time of the first / time of the second",
        above_is_better=False,
    ),
    MODES.name: Question(
        question="What is the mode worth?",
        caption="The step time of the second mode over that of the first, with its 95 % interval; what else "
        "differs stands in its table. Right of 1 the first is faster.",
        of="time of the second / time of the first",
    ),
    PRECISIONS.name: Question(
        question="What is the precision worth?",
        caption="The step time in fp32 over that in the first precision, with its 95 % interval; what else "
        "differs stands in its table. Right of 1 the first is faster.",
        of="time in fp32 / time in the first",
    ),
    DEVICES.name: Question(
        question="How much does the GPU gain, by model?",
        caption="The step time on the CPU over that on the GPU, with its 95 % interval. Right of 1 the GPU is faster.",
        of="CPU time / GPU time",
        side="GPU",
    ),
}


def show_ratios(analysis: Analysis, *, name: str) -> FigureGroup:
    """Return the group of a comparison, a panel per model and phase that has a ratio; of devices per pair of them.

    Pairs that were not compared have a row without a mark, ratios of one repeat no interval, unsound sides a cross.
    """
    asked, pairs = QUESTIONS[name], take_joint_intervals(analysis.comparisons[name])
    rows = pairs.assign(is_sound=list_sound(pairs), panel=label_panels(pairs))
    if name == DEVICES.name:
        kinds = zip(rows["gpu_name_subject"], rows["cpu_model_reference"], rows["num_threads_reference"], strict=True)
        rows = rows.assign(panel=[f"{gpu} over {label_hardware(cpu, threads)}" for gpu, cpu, threads in kinds])
        names = label_shared(pairs)
    else:
        sides = zip(pairs["subject"], pairs["reference"], label_shared(pairs, in_panel=True), strict=True)
        names = [f"{subject} / {reference}, {rest}" for subject, reference, rest in sides]
    answers: dict[str, Any] = {"better": f"{asked.side} faster", "worse": f"{asked.side} slower", "of": asked.of}
    hold_together = [VERDICT_CAPTION] if pairs["p_value"].notna().any() else []
    return show_panels(
        rows.assign(name=names),
        partial(plot_ratios, above_is_better=asked.above_is_better, **answers),
        "{name}: {ratio} ({scope})",
        question=asked.question,
        caption=" ".join([asked.caption, *hold_together, UNSOUND_CAPTION]),
        value="ratio",
        limit=ROWS,
    )


LATENCIES = {"p50_ratio": "p50", "p95_ratio": "p95", "p99_ratio": "p99"}


def show_sharing(analysis: Analysis) -> tuple[FigureGroup, ...]:
    sharing = analysis.sharing
    alike = sharing[sharing["neighbour"].isna()]
    mixed = sharing[sharing["neighbour"].notna() & (sharing["role"] == "cell")]
    together = show_panels(
        add_panels_of_cells(read_ratio(alike, "aggregate_ratio")),
        plot_aggregate,
        "{tenants} tenants by {series}: together {ratio} times one alone",
        question="What do tenants get out of one device together?",
        caption="The throughput of all tenants over that of one alone on the device, with its 95 % interval where "
        f"both have two repeats. At the dashed line, sharing gains and loses nothing. {CROSS_CAPTION}",
        value="ratio",
    )
    return together, _show_latencies(mixed)


def plot_aggregate(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw what all tenants get together over one alone; the axis begins at zero. `rows`: of `add_panels_of_cells`."""
    axis = alt.Axis(tickCount=4)
    make_y = partial(alt.Y, title="together, over one alone", scale=alt.Scale(zero=True), axis=axis)
    return plot_lines(rows, x="tenants", value="ratio", make_y=make_y, beneath=[draw_level("ratio", 1, make_y)])


def _show_latencies(mixed: pd.DataFrame) -> FigureGroup:
    named = [
        read_ratio(mixed, column).rename(columns={"low": "ratio_low", "high": "ratio_high"}).assign(percentile=name)
        for column, name in LATENCIES.items()
    ]
    rows = pd.concat(named, ignore_index=True)
    rows = rows[rows["ratio_low"].notna()]
    names = [", ".join(parts) for parts in zip(rows["percentile"], label_shared(rows, in_panel=True), strict=True)]
    return show_panels(
        rows.assign(panel=label_panels(rows), name=names),
        partial(
            plot_ratios,
            better="shorter",
            worse="longer",
            above_is_better=False,
            of="time beside the neighbour / time alone",
        ),
        "{name}: {ratio} times",
        question="What does a neighbour do to the latency?",
        caption="A percentile of the cell's steps beside its neighbour over the same percentile alone, with its 95 % "
        "interval. Right of 1 the neighbour makes it longer.",
        value="ratio",
        limit=ROWS,
    )


def read_ratio(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return all rows with the estimate of `column` as ratio, low and high, and whether they are sound."""
    ends = zip(ENDS, ("", "_low", "_high"), strict=True)
    return rows.assign(is_sound=rows["num_sound"] > 0, **{name: rows[f"{column}{end}"] for name, end in ends})


def add_panels_of_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a panel for each cell, its name without its tenants, and in each the cell alone as 1 tenant.

    Their `series` is how the GPU was shared. Rows without a ratio are among them, for lines break there; a cell without
    any ratio has no panel.
    """
    if rows.empty:
        return rows.assign(panel="", series="")
    named = rows.assign(panel=add_labels(rows.assign(tenants=1, sharing=WHOLE_DEVICE))["label"])
    named = named[named.groupby("panel")["ratio"].transform("count") > 0]
    alone = pd.DataFrame({"panel": list(dict.fromkeys(named["panel"])), "tenants": 1, "sharing": WHOLE_DEVICE})
    points = pd.concat([alone.assign(ratio=1.0, is_sound=True), named], ignore_index=True)
    columns = ["panel", "tenants", *ENDS, "is_sound", "cell_id"]
    return points[columns].assign(series=points["sharing"].map(SHARING_NAMES))


Show = Callable[[Analysis], FigureGroup | tuple[FigureGroup, ...]]
PLOTS: Mapping[str, tuple[str, Show]] = {
    "frameworks": ("pairs of frameworks with an interval", partial(show_ratios, name=FRAMEWORKS.name)),
    "modes": ("pairs of modes with an interval", partial(show_ratios, name=MODES.name)),
    "precisions": ("pairs of precisions with an interval", partial(show_ratios, name=PRECISIONS.name)),
    "speedups": ("the same cells on a GPU and a CPU, with intervals", partial(show_ratios, name=DEVICES.name)),
    "latencies": ("cells at two batches or more", show_latencies),
    "tokens": ("decoding at two batches or more", show_tokens),
    "roofline": ("cells with a FLOP count", show_roofline),
    "memory": ("GPU cells whose framework says its memory", show_memory),
    "scaling": ("the same cells on one GPU and on several", show_scaling),
    "tenants": ("cells with tenants, and the same cells alone", show_sharing),
}
"""By name, what a run has to have for there to be something to draw, and what draws it."""


def draw_plot(name: str, analysis: Analysis) -> tuple[FigureGroup, ...]:
    """Return the groups of figures of a plot; those that have something to draw."""
    shown = PLOTS[name][1](analysis)
    return tuple(group for group in (shown if isinstance(shown, tuple) else (shown,)) if group.figures)

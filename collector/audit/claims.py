"""Judge the claims of study.yaml, which is a table like anybody's, by arithmetic, then by what runs measured.

docs/report.md, "Published claims", says what the verdicts mean and which configuration decides.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import inf, sqrt
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import pandas as pd
import yaml
from pydantic import Field

from bench.schema import Device, Document, Phase
from collector.audit.rows import TOLERANCE, Algorithm, Rate, list_rates
from collector.audit.table import AuditTable, StatedDevice, find_device
from collector.cell_words import DEVICE_NAMES, FRAMEWORK_NAMES
from collector.comparisons import DEVICES, FRAMEWORKS, SIDES, Comparison, compare_cells
from collector.labels import label_hardware, label_shared
from collector.results.frames import Row, list_rows, select_alone
from collector.results.summary import read_estimate
from collector.units import PERCENT, RATIO, format_interval, format_number, format_significant

STUDY_PATH = Path(__file__).parent / "study.yaml"

Positive = Annotated[float, Field(gt=0)]
ClaimKind = Literal["speedup", "lightness", "phases", "latency", "fusion", "stated"]
ClaimVerdict = Literal[
    "reproduced",
    "not reproduced",
    "not decided",
    "implausible without Winograd",
    "implausible on the stated hardware",
    "impossible on the stated hardware",
    "peak rates only",
    "not tested here",
]


class Finding(Document):
    """What arithmetic shows about a claim and no verdict says; it decides nothing."""

    title: str
    reason: str


class Claim(Document):
    """One claim; what `figure` is, its kind says: a speedup, a ratio of times, a share that latency falls by."""

    id: str
    kind: ClaimKind
    """`stated`: no run can decide it; verdict, reason and findings stand in the file."""
    statement: str
    sources: tuple[str, ...]
    """Keys of `Study.sources`: who reports what the claim is read in."""
    quote: str = ""
    """The sentence, word for word, as the first of `sources` has it; empty where the figure follows from the table."""
    model: str = ""
    phase: Phase = "train"
    figure: Positive = 1.0
    verdict: ClaimVerdict = "not tested here"
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    facts: tuple[str, ...] = ()
    """What arithmetic gives beside the times that the claim rests on, what others measured, and what else is known."""


class Study(AuditTable):
    """The study's table with its claims, and claims of other pages beside them."""

    caveat: str
    """What of the study was read, and how."""
    gpu: str
    cpu: str
    """The names of its two devices."""
    sources: dict[str, str]
    """Who reports a claim, in words that follow "of"."""
    claims: tuple[Claim, ...]

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(str(row.model) for row in self.rows))

    def describe_provenance(self, claim: Claim) -> str:
        return " and ".join(self.sources[source] for source in claim.sources)

    def pair_rates(self, model: str, one: tuple[str, Phase], other: tuple[str, Phase]) -> list[tuple[Rate, Rate]]:
        """Return TensorFlow's rates on two (device, phase), together under each reading of the model's work."""
        rows = {
            (row.device, row.phase): row for row in self.rows if (row.model, row.framework) == (model, "tensorflow")
        }
        first, second = (list_rates(rows[side], find_device(self, rows[side])) for side in (one, other))
        return list(zip(first, second, strict=True))

    def describe_time(self, rate: Rate) -> str:
        row, device = rate.row, DEVICE_NAMES["gpu" if rate.row.device == self.gpu else "cpu"]
        return f"{FRAMEWORK_NAMES[str(row.framework)]} {row.phase} on the {device}: {rate.describe()}"

    def find_device(self, device: Device) -> StatedDevice:
        return find_device(self, next(row for row in self.rows if row.device == getattr(self, device)))


@cache
def load_study() -> Study:
    return Study.model_validate_json(json.dumps(yaml.safe_load(STUDY_PATH.read_text(encoding="utf-8"))))


def list_shipped_tables() -> dict[str, Path]:
    """Return the tables' files by their names; `load_study` reads that of the study, which holds claims too."""
    return {path.stem: path for path in (*sorted(STUDY_PATH.parent.glob("tables/*.yaml")), STUDY_PATH)}


GAIN_TOLERANCE = 0.05
""""About 15 %": from 10 to 20 %."""
CLASSES = (("conv6",), ("vgg16", "resnet18"), ("cyclegan",))
"""The models as the abstract sorts them: light, mid-sized, complex."""
MAX_LINES = 12
DEVICE_COLUMNS = {"cpu": "cpu_model", "gpu": "gpu_name"}
VERDICTS: Mapping[Algorithm | None, ClaimVerdict] = {
    "direct convolutions": "not tested here",
    "F(2x2, 3x3)": "implausible without Winograd",
    "F(4x4, 3x3)": "implausible on the stated hardware",
    None: "impossible on the stated hardware",
}
"""The verdict on a claim that rests on a time, by the plainest algorithm that reaches it."""
PHASES = Comparison(name="phases", field="phase", pairs=(("train", "infer"),), measure="time ratio")
# What TensorFlow's modes cost beside each other: with fusion, without it, and with batch norms as one operation.
FUSION = Comparison(
    name="fusion",
    field="mode",
    pairs=(("graph", "unfused"), ("fused-norm", "graph"), ("compiled", "graph")),
    measure="time ratio",
)

ReasonedVerdict = tuple[ClaimVerdict, str]


class ClaimResult(NamedTuple):
    """A claim with what arithmetic and runs say about it."""

    claim: Claim
    verdict: ClaimVerdict
    reason: str
    """What the verdict rests on, without a full stop."""
    arithmetic: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClaimContext:
    """What claims are judged from: the study, and cells of its models at fp32 on one GPU at most, alone on it.

    `pairs`: `speedups`, GPU over CPU; `phases`, training over inference on a CPU; `latencies` and `fusion`, TensorFlow
    over PyTorch and modes of TensorFlow, of inference on a GPU at the stated input sizes on synthetic data.
    """

    study: Study
    rows: pd.DataFrame
    pairs: Mapping[str, pd.DataFrame]

    def find_stated_batches(self, rows: pd.DataFrame) -> "pd.Series[bool]":
        stated = {str(row.model): row.batch_size for row in self.study.rows}
        return (rows["batch_size"] == rows["model"].map(stated)).astype(bool)

    def select(self, name: Literal["speedups", "phases"], model: str, phase: Phase | None = None) -> pd.DataFrame:
        """Return the pairs of a model and phase, the study's own configuration first, then the others at its work.

        Columns are added: `is_own` (at the stated work in TensorFlow's graph mode), and `is_stated_hardware`: both
        sides ran on the study's kind of device, the CPU with as many threads.
        """
        pairs = self.pairs[name]
        pairs = pairs[(pairs["model"] == model) & (phase is None or pairs["phase"] == phase)]
        is_work = self.find_stated_batches(pairs) & _find_stated_sizes(pairs, self.study)
        is_own = is_work & (pairs["framework"] == "tensorflow") & (pairs["mode"] == "graph")
        is_hardware = _find_stated_device(pairs, self.study, "cpu", "reference")
        if name == "speedups":
            is_hardware &= _find_stated_device(pairs, self.study, "gpu", "subject")
        order = pd.DataFrame({"own": is_own, "work": is_work})
        places = order.sort_values([*order], ascending=False, kind="stable").index
        return pairs.assign(is_own=is_own, is_stated_hardware=is_hardware).loc[places]


def _find_stated_sizes(rows: pd.DataFrame, study: Study) -> "pd.Series[bool]":
    """Return which rows are of an input size that a cell of the study's work is read at, on synthetic data."""
    stated = {(row.model, one.input_size) for row in study.rows for one in row.list_readings() if one.is_model}
    sizes = zip(rows["model"], rows["input_size"], strict=True)
    return pd.Series([size in stated for size in sizes], index=rows.index, dtype=bool) & rows["data_dir"].isna()


def _find_stated_device(pairs: pd.DataFrame, study: Study, device: Device, side: str) -> "pd.Series[bool]":
    stated, columns = study.find_device(device), [f"{DEVICE_COLUMNS[device]}_{side}", f"num_threads_{side}"]
    rows = pairs[columns].astype(object).where(pairs[columns].notna(), None)
    found = [
        name is not None and stated.is_measured(device, name, number) for name, number in rows.itertuples(index=False)
    ]
    return pd.Series(found, pairs.index, dtype=bool)


def gather_context(summary: pd.DataFrame) -> ClaimContext:
    study = load_study()
    rows = select_alone(summary[(summary["num_gpus"] == 1) & (summary["precision"] == "fp32")])
    rows = rows[rows["model"].isin(study.models)]
    infer = rows[(rows["phase"] == "infer") & (rows["device"] == "gpu") & _find_stated_sizes(rows, study)]
    latencies = compare_cells(infer, FRAMEWORKS)
    pairs = {
        "speedups": compare_cells(rows, DEVICES),
        "phases": compare_cells(rows[rows["device"] == "cpu"], PHASES),
        "latencies": latencies[latencies["framework_subject"] == "tensorflow"],
        "fusion": compare_cells(infer[infer["framework"] == "tensorflow"], FUSION),
    }
    return ClaimContext(study=study, rows=rows, pairs=pairs)


def evaluate_claims(context: ClaimContext) -> tuple[ClaimResult, ...]:
    return tuple(_EVALUATORS[claim.kind](claim, context) for claim in context.study.claims)


# How intervals lie to a band

Interval = tuple[float, float]
Place = Literal["inside", "across", "outside"]
"""The kindest first: of several readings of a model's work the one that is kindest to the claim counts."""
DECIDED: Mapping[Place, ClaimVerdict] = {"inside": "reproduced", "across": "not decided", "outside": "not reproduced"}
RANK = [*DECIDED]


def _place(interval: Interval, band: Interval) -> Place:
    """Return where an interval lies: inside the band, outside without touching it, or across one of its edges."""
    low, high = interval
    if band[0] <= low and high <= band[1]:
        return "inside"
    return "outside" if high < band[0] or low > band[1] else "across"


def _list_intervals(pairs: pd.DataFrame) -> list[Interval]:
    known = pairs[pairs["ratio_low"].notna()]
    return list(zip(known["ratio_low"], known["ratio_high"], strict=True))


# Ratios of two times: GPU over CPU, training over inference


def evaluate_ratio(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim of GPU over CPU, or of training over inference on that CPU, by its two times, then by runs."""
    study = context.study
    if claim.kind == "speedup":
        sides = study.pair_rates(claim.model, (study.cpu, claim.phase), (study.gpu, claim.phase))
        pairs, hardware = context.select("speedups", claim.model, claim.phase), f"{study.gpu} over a {study.cpu}"
        times, listed = [study.describe_time(rate) for pair in sides for rate in pair], pairs
    else:
        sides = study.pair_rates(claim.model, (study.cpu, "train"), (study.cpu, "infer"))
        pairs, hardware = context.select("phases", claim.model), study.cpu
        times, listed = [], pairs.assign(phase="train over infer")
    verdict, reason = _judge_ratio(claim.figure, sides, pairs, hardware, study)
    return ClaimResult(claim, verdict, reason, (*times, *claim.facts), list_measured(listed))


def _judge_ratio(
    figure: float, sides: Sequence[tuple[Rate, Rate]], pairs: pd.DataFrame, hardware: str, study: Study
) -> ReasonedVerdict:
    """Return the verdict on a ratio of two times, `sides` under each reading; `pairs`: of `ClaimContext.select`.

    What is impossible by arithmetic stays so; otherwise what was measured decides, and arithmetic only where that
    decides nothing. The reading that is kindest to both times counts, by the less plausible one: one network made both.
    """
    own = pairs[pairs["is_own"]]
    same = own[own["is_stated_hardware"]]
    verdict: ClaimVerdict = "not tested here"
    if same["ratio_low"].notna().any():
        verdict, reason = _place_ratio(figure, same)
    elif not same.empty:
        reason = f"measured on the stated hardware, but {explain_missing_intervals(same)}"
    elif own["ratio"].notna().any():
        reason = f"the figure is of a {hardware}; measured here is other hardware"
    elif not own.empty:
        reason = f"at the stated work, in TensorFlow's graph mode, {explain_missing_intervals(own)}"
    elif pairs["ratio"].notna().any():
        reason = (
            "measured here is other work than the study's: not its batch, its input size and synthetic data in "
            "TensorFlow's graph mode, on both sides"
        )
    else:
        reason = explain_missing_intervals(pairs) or "no cell of this work was measured on both sides"
    worst = min((max(pair, key=lambda rate: rate.severity) for pair in sides), key=lambda rate: rate.severity)
    is_decided = verdict in ("reproduced", "not reproduced")
    if worst.plausibility == "impossible" or (worst.plausibility == "implausible" and not is_decided):
        return VERDICTS[worst.algorithm], f"{study.describe_time(worst)}: {worst.describe_algorithm()}"
    return verdict, reason


def _place_ratio(figure: float, pairs: pd.DataFrame) -> ReasonedVerdict:
    """Return whether the intervals of a reading's pairs lie within TOLERANCE of the figure; the kindest size counts."""
    band = (figure * (1 - TOLERANCE), figure * (1 + TOLERANCE))
    words = {"inside": "inside", "outside": "outside", "across": "too wide to decide, across an edge of"}
    sizes, texts = [], []
    for size, group in pairs[pairs["ratio_low"].notna()].groupby("input_size", sort=False):
        placed = [(interval, _place(interval, band)) for interval in _list_intervals(group)]
        spans = [f"{format_interval(*interval, RATIO)} times ({words[place]} the band)" for interval, place in placed]
        sizes.append(max((place for _, place in placed), key=RANK.index))
        texts.append(f"at {size} px {', '.join(spans)}")
    return DECIDED[min(sizes, key=RANK.index)], (
        f"on the stated hardware, the 95 % interval of the ratio alone is {'; '.join(texts)}; "
        f"the band {format_interval(*band, RATIO)} times, the figure within {TOLERANCE * 100:.0f} %"
    )


# The order of the models


def _evaluate_lightness(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Check whether heavier models gain more from the GPU in training, in the order that the study states.

    Only pairs on the stated hardware, at the study's own work, decide.
    """
    study = context.study
    pairs = {model: context.select("speedups", model, "train") for model in study.models}
    verdict, reason = _compare_classes(pairs, study)
    measured = list_measured(pd.concat([found[found["is_own"]] for found in pairs.values()]))
    return ClaimResult(claim, verdict, reason, claim.facts, measured)


def _compare_classes(pairs: Mapping[str, pd.DataFrame], study: Study) -> ReasonedVerdict:
    intervals = {
        model: _list_intervals(found[found["is_own"] & found["is_stated_hardware"]]) for model, found in pairs.items()
    }
    if missing := [model for model, found in intervals.items() if not found]:
        return "not tested here", (
            f"the order is of a {study.gpu} over a {study.cpu}, in TensorFlow's graph mode at the study's own work; "
            f"not measured there: {', '.join(missing)}"
        )
    words = {"inside": "gains more than", "outside": "gains less than", "across": "is not shown to gain more than"}
    places: list[Place] = []
    texts: list[str] = []
    for lighter, heavier in zip(CLASSES[:-1], CLASSES[1:], strict=True):
        for light, heavy in product(lighter, heavier):
            # How far it is ahead, in the worst and in the best case; the kindest of the readings counts.
            leads = product(intervals[light], intervals[heavy])
            found = [_place((low - above, high - below), (0, inf)) for (low, high), (below, above) in leads]
            places.append(min(found, key=RANK.index))
            texts.append(f"{light} {words[places[-1]]} {heavy}")
    return DECIDED[max(places, key=RANK.index)], f"on the stated hardware {', '.join(texts)}"


# Latency, by frameworks and by fusion


class _Gain(NamedTuple):
    """The share by which latency falls, below zero where it rises, with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float

    def describe(self) -> str:
        """Return `conv6 18.6 % lower`."""
        size = format_number(abs(self.value), PERCENT)
        return f"{self.name} {size} % {'lower' if self.value >= 0 else 'higher'}"


def _evaluate_gain(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim that latency falls by about the figure: by TensorFlow instead of PyTorch, or by fusion.

    It is judged by the mean over the study's models at its own work: see docs/decisions/0013-claims-and-audit.md. Other
    modes are listed only.
    """
    study, graph = context.study, "Keras on TensorFlow in graph mode"
    if claim.kind == "latency":
        pairs, modes, what = context.pairs["latencies"], ("graph", "eager"), f"{graph} over PyTorch eager"
    else:
        pairs, modes, what = context.pairs["fusion"], ("graph", "unfused"), f"{graph} with fusion over the same without"
    pairs = pairs[context.find_stated_batches(pairs)]
    is_own = (pairs["mode_subject"] == modes[0]) & (pairs["mode_reference"] == modes[1])
    verdict, reason = _judge_gains(claim.figure, pairs[is_own], study, what)
    measured = list_measured(pd.concat([pairs[is_own], pairs[~is_own]]))
    return ClaimResult(claim, verdict, reason, claim.facts, measured)


def _judge_gains(figure: float, own: pd.DataFrame, study: Study, what: str) -> ReasonedVerdict:
    """Return the verdict on the mean; the stated GPU decides where it was measured, or else every GPU that was.

    `own`: time ratios at the study's work. `what`: what is compared, in words.
    """
    known = own[own["ratio_low"].notna()]
    by_gpu = {str(gpu): _collect_gains(group) for gpu, group in known.groupby("gpu_name_subject", sort=True)}
    complete = {gpu: gains for gpu, gains in by_gpu.items() if set(gains) == set(study.models)}
    decisive = {
        gpu: gains for gpu, gains in complete.items() if study.find_device("gpu").is_measured("gpu", gpu, None)
    } or complete
    if not decisive:
        measured = "; ".join(f"{', '.join(gains)} on {gpu}" for gpu, gains in by_gpu.items())
        missing = explain_missing_intervals(own)
        return "not tested here", (
            f"the claim is a mean over {len(study.models)} models at the study's own batches and sizes, of which these "
            f"runs have {measured or 'none'}{f': {missing}' if missing else ''}"
        )
    band, places, texts = (figure - GAIN_TOLERANCE, figure + GAIN_TOLERANCE), [], []
    for gpu, gains in decisive.items():
        means = [(chosen, _average_gains(chosen)) for chosen in product(*gains.values())]  # a size of each model
        chosen, mean = min(means, key=lambda one: RANK.index(_place(one[1][2:], band)))
        places.append(_place((mean.low, mean.high), band))
        low, high = (mean.low, mean.high) if mean.value >= 0 else (-mean.high, -mean.low)
        interval = f"(95 % interval {format_interval(low, high, PERCENT)})"
        listed = ", ".join(gain.describe() for gain in chosen)
        texts.append(f"on {gpu}, {what} at the study's own work: {mean.describe()} {interval}, of {listed}")
    return DECIDED[max(places, key=RANK.index)], f"{'; '.join(texts)}; the band is {format_interval(*band, PERCENT)} %"


def _collect_gains(pairs: pd.DataFrame) -> dict[str, list[_Gain]]:
    gains: dict[str, list[_Gain]] = {}
    for (model, size), group in pairs.groupby(["model", "input_size"], sort=True):
        middle, highest, lowest = group["ratio"].median(), group["ratio_high"].max(), group["ratio_low"].min()
        gain = _Gain(f"{model} at {size} px", *(1 - float(ratio) for ratio in (middle, highest, lowest)))
        gains.setdefault(str(model), []).append(gain)
    return gains


def _average_gains(gains: Sequence[_Gain]) -> _Gain:
    """Return the mean of independent gains; its interval is put together from theirs.

    The distances of the limits from the values add up in squares: G. Y. Zou, A. Donner, Construction of confidence
    limits about effect measures, Statistics in Medicine 27 (2008) 1693.
    """
    value = sum(gain.value for gain in gains) / len(gains)
    below = sqrt(sum((gain.value - gain.low) ** 2 for gain in gains)) / len(gains)
    above = sqrt(sum((gain.high - gain.value) ** 2 for gain in gains)) / len(gains)
    return _Gain("arithmetic mean", value, value - below, value + above)


_EVALUATORS: Mapping[ClaimKind, Callable[[Claim, ClaimContext], ClaimResult]] = {
    "speedup": evaluate_ratio,
    "lightness": _evaluate_lightness,
    "phases": evaluate_ratio,
    "latency": _evaluate_gain,
    "fusion": _evaluate_gain,
    "stated": lambda claim, _: ClaimResult(claim, claim.verdict, claim.reason, claim.facts),
}


# What was measured, in lines


def list_measured(pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return a line for each pair that has a ratio, MAX_LINES at most, and one on those that have no interval."""
    known = pairs[pairs["ratio"].notna()]
    lines = [f"{label}, {_describe(row)}" for label, row in zip(label_shared(known), list_rows(known), strict=True)]
    if len(lines) > MAX_LINES:
        more = len(lines) - MAX_LINES + 1
        lines = [*lines[: MAX_LINES - 1], f"and {more} more, see the comparisons of the runs' reports"]
    return (*lines, *filter(None, [explain_missing_intervals(pairs)]))


def explain_missing_intervals(pairs: pd.DataFrame) -> str:
    """Return why pairs have no interval: left out, of a single repeat, not comparable; empty where all have one."""
    single = int((pairs["ratio"].notna() & pairs["ratio_low"].isna()).sum())
    without = pairs[pairs["ratio"].isna()]
    counts = (without["decision"] + ": " + without["reason"]).value_counts()
    reasons = [f"{reason} ({count} of {len(pairs)} pairs)" for reason, count in counts.items()]
    reasons += [f"no interval for {single} of {len(pairs)} pairs, as a side has one repeat" if single else ""]
    return "; ".join(filter(None, reasons))


def _describe(pair: Row) -> str:
    """Return what was compared on what, with the ratio: that of speeds for devices, else of times."""
    parts = ("cpu_model", "num_threads", "gpu_name")
    hardware = (label_hardware(*(pair[f"{part}_{side}"] for part in parts)) for side in SIDES)
    devices = " over ".join(dict.fromkeys(hardware))
    ends = read_estimate(pair, center="ratio").find_joint_interval(1)
    interval = "no interval, one repeat" if ends is None else f"95 % interval {format_interval(*ends, RATIO)}"
    ratio = (
        f"{format_significant(pair['ratio'])} times the {'speed' if 'device_subject' in pair else 'time'} ({interval})"
    )
    return f"{devices}: {pair['subject']} over {pair['reference']} {ratio}"

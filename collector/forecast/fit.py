"""Forecast a series: three candidates, a backtest that ranks them and calibrates their intervals, the growth, the gap.

An interval rests on the errors that a candidate made in the backtest as far ahead; where these are too few, or the
interval is too wide to say anything, the forecast is refused in words.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from bench.errors import UserError
from collector.forecast.series import MIN_DATES, Series
from collector.units import count_things

FloatArray = npt.NDArray[np.float64]

DEFAULT_LEVEL = 0.95
DEFAULT_MAX_FACTOR = 100.0
"""Widest interval of a forecast, upper over lower bound: beyond two powers of ten it says nothing that could guide a
purchase."""
MAX_YEARS_AHEAD = 25
MAX_HALF_WIDTH_LOG2 = 500.0
"""Of an interval in powers of two: a factor of 1e150 to either side says nothing, and its square is still a float."""
MIN_INDEPENDENT = 2.0
"""Fewest independent cases for an interval with a level: of one alone, 95 % would be 12.7 times its error."""
MIN_ORIGINS = 3
"""Fewest origins to score candidates on; at a horizon with fewer, the longest one that has them is taken."""
SAME_LEVEL = 0.05
"""A candidate is no worse than the winner where chance alone gives such a difference more often than this."""
LEAST_LOG2 = 1e-9
"""A slower growth, of one doubling in a billion years, is the rounding of a series that does not change."""


def format_plain(value: float) -> str:
    """Write a number with three significant digits: in full up to a billion, else as a power of ten."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:.2e}" if abs(rounded) >= 1e9 or 0 < abs(rounded) < 1e-6 else f"{rounded:,.10g}"


def format_amount(value: float, unit: str) -> str:
    """Write an amount, as in `1,230 GB` or `3.2e+25 FLOP`."""
    return f"{format_plain(value)} {unit}".rstrip()


# Candidates: what was known at a time and later dates (decimal years) to values.


def fit_polynomial(dates: FloatArray, values: FloatArray, ahead: FloatArray, degree: int = 2) -> FloatArray:
    """Return the least-squares polynomial of the values: the method of the study (arXiv 2603.20920)."""
    return np.asarray(np.polynomial.Polynomial.fit(dates, values, degree)(ahead))


def _fit_log_linear(dates: FloatArray, values: FloatArray, ahead: FloatArray) -> FloatArray:
    return np.exp2(fit_polynomial(dates, np.log2(values), ahead, 1))


def _repeat_last(dates: FloatArray, values: FloatArray, ahead: FloatArray) -> FloatArray:
    """Repeat the median of the year up to the last date: of a series with one value a year, that is the last value."""
    return np.full(len(ahead), np.median(values[dates > dates.max() - 1]))


LAST_VALUE = "last value"
CANDIDATES: dict[str, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]] = {
    "polynomial": fit_polynomial,
    "log-linear": _fit_log_linear,
    LAST_VALUE: _repeat_last,
}


def _predict(name: str, series: Series, until: int, ahead: FloatArray) -> FloatArray:
    """Return a candidate's values from what was out by the end of a calendar year."""
    known = series.observations[series.observations["year"] <= until]
    dates, values = known["date"].to_numpy(dtype=float), known["value"].to_numpy(dtype=float)
    return CANDIDATES[name](dates, values, ahead)


def replay_origins(series: Series, max_horizon: int) -> pd.DataFrame:
    """Forecast, from the end of each year with enough behind it, what came out up to `max_horizon` years later.

    An origin needs MIN_DATES dates, and no candidate is asked to look further ahead than these reach back. Columns:
    candidate, origin, horizon (years), year, actual, predicted, error_log2 (log2 of predicted over actual; NaN where
    zero or less was predicted).
    """
    observations, rows = series.observations, []
    for origin in range(series.first_year, series.last_year):
        dates = observations.loc[observations["year"] <= origin, "date"]
        horizons = observations["year"] - origin
        later = observations[(horizons >= 1) & (horizons <= min(max_horizon, np.ceil(np.ptp(dates))))]
        if dates.nunique() < MIN_DATES or later.empty:
            continue
        for name in CANDIDATES:
            predicted = _predict(name, series, origin, later["date"].to_numpy(dtype=float))
            for year, actual, value in zip(later["year"], later["value"], predicted.tolist(), strict=True):
                error = math.log2(value / actual) if value > 0 else math.nan
                rows.append((name, origin, int(year) - origin, int(year), actual, value, error))
    columns = ["candidate", "origin", "horizon", "year", "actual", "predicted", "error_log2"]
    return pd.DataFrame(rows, columns=columns).astype({"error_log2": "float64"})


class Calibration(NamedTuple):
    """The errors of one candidate at one horizon: a forecast's interval is a factor up and down from it."""

    num_origins: int
    num_independent: float
    """What the origins are worth: the errors of windows that overlap go together."""
    spread_log2: float
    """Root mean square of log2(forecast / truth), bias and all; each origin counts once."""

    def find_half_width(self, level: float) -> float:
        """Return half of the interval's width, in log2: Student's t times the spread.

        A new error over the root mean square of earlier ones has that distribution if all are normal around zero.
        """
        return float(special.stdtrit(self.num_independent, (1 + level) / 2)) * self.spread_log2


def calibrate(cases: pd.DataFrame, horizon: int) -> Calibration | None:
    """Return the calibration from one candidate's cases at a horizon.

    None where there is no honest one: fewer than MIN_INDEPENDENT independent cases, or one without a forecast.
    """
    if cases.empty or cases["error_log2"].isna().any():
        return None
    squares = _average_squares(cases)
    num_independent = count_independent(squares.index.to_numpy(), horizon)
    if num_independent < MIN_INDEPENDENT:
        return None
    return Calibration(len(squares), num_independent, math.sqrt(squares.mean()))


def _average_squares(cases: pd.DataFrame) -> pd.Series:
    """Return the mean squared error of each origin: cases from one origin go together."""
    return (cases["error_log2"] ** 2).groupby(cases["origin"]).mean()


def count_independent(origins: npt.ArrayLike, horizon: int) -> float:
    """Return how many independent squared errors the mean over these origins is worth.

    Errors `horizon` years ahead from origins k years apart share all but k of their years, as sums of yearly shocks
    they are correlated by 1 - k / horizon, and their squares by the square of that. The degrees of freedom of the mean
    of n correlated squares are n^2 over the sum of these (Satterthwaite's approximation).
    """
    years = np.asarray(origins)
    overlap = np.clip(1 - np.abs(np.subtract.outer(years, years)) / horizon, 0.0, None)
    return float(len(years) ** 2 / (overlap**2).sum())


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """What the backtest says of the candidates."""

    horizon: int | None
    """What was scored, years ahead: the horizon asked for, or the longest shorter one; None: no backtest."""
    scores: pd.DataFrame
    """candidate; origins, cases, refused (counts); rms_error_log2 over the cases that were not refused, each origin
    once (1 means off by a factor of 2; NaN without such a case)."""
    winner: str | None
    """The least error of the candidates that gave a forecast in every case; None: there is none."""
    rivals: tuple[str, ...]
    """Candidates whose errors do not differ from the winner's by more than chance."""
    num_independent: float
    """What the origins are worth in independent cases."""


def rank_candidates(backtest: pd.DataFrame, horizon: int) -> Ranking:
    """Score the candidates `horizon` years ahead, or at the longest horizon below that has MIN_ORIGINS origins."""
    origins = backtest[backtest["horizon"] <= horizon].groupby("horizon")["origin"].nunique()
    enough = origins[origins >= MIN_ORIGINS]
    scored = None if enough.empty else int(enough.index.max())
    cases = backtest[backtest["horizon"] == scored]
    rows = []
    for name in CANDIDATES:
        own = cases[cases["candidate"] == name]
        squares = _average_squares(own.dropna(subset="error_log2"))
        refused = int(own["error_log2"].isna().sum())
        rms = math.sqrt(squares.mean()) if len(squares) else math.nan
        rows.append((name, own["origin"].nunique(), len(own), refused, rms))
    scores = pd.DataFrame(rows, columns=["candidate", "origins", "cases", "refused", "rms_error_log2"])
    answered = scores[(scores["cases"] > 0) & (scores["refused"] == 0)].sort_values("rms_error_log2", kind="stable")
    winner = answered["candidate"].iloc[0] if len(answered) else None
    num_independent = count_independent(cases["origin"].unique(), scored) if scored else 0.0
    rivals: tuple[str, ...] = ()
    if winner is not None:
        table = cases.assign(square=cases["error_log2"] ** 2).pivot_table("square", "origin", "candidate")
        others = [name for name in scores["candidate"] if name in set(answered["candidate"]) - {winner}]
        rivals = tuple(name for name in others if _is_same(table[name] - table[winner], num_independent))
    return Ranking(horizon=scored, scores=scores, winner=winner, rivals=rivals, num_independent=num_independent)


def _is_same(differences: pd.Series, num_independent: float) -> bool:
    """Compare squared errors with the winner's, origin by origin, by Student's t over independent cases."""
    if num_independent <= 1:
        return True
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    if spread == 0:
        return mean == 0
    t = mean / (spread / math.sqrt(num_independent))
    return bool(2 * special.stdtr(num_independent - 1, -abs(t)) > SAME_LEVEL)


class Rate(NamedTuple):
    """log2 of the growth factor a year, and its confidence interval."""

    log2: float
    lower_log2: float
    upper_log2: float

    @property
    def factors(self) -> tuple[float, float, float]:
        """The growth factor a year, its lower and its upper bound."""
        return 2**self.log2, 2**self.lower_log2, 2**self.upper_log2

    @property
    def doubling_years(self) -> tuple[float, float, float]:
        """The years in which the value doubles, the shortest and the longest; infinite: it may not grow."""
        years = [
            1 / slope if slope > LEAST_LOG2 else math.inf for slope in (self.log2, self.upper_log2, self.lower_log2)
        ]
        return years[0], years[1], years[2]


class Growth(NamedTuple):
    """The growth of a series, with intervals under two assumptions."""

    rate: Rate
    """Least squares; the interval takes every observation's error for independent, normal and equally spread."""
    by_year: Rate | None
    """The same line; the interval takes errors within a calendar year for dependent. None: one observation a year."""


def measure_growth(observations: pd.DataFrame, level: float) -> Growth:
    """Fit a line to log2 of the values over the dates.

    Errors that depend on each other within a year are allowed for by the sandwich estimator for clusters (Liang and
    Zeger, Biometrika 73, 1986) with Stata's correction G/(G-1) (n-1)/(n-2) and Student's t for the number of years G
    less 1; it is too narrow for few years.
    """
    dates, logs = (observations["date"].to_numpy(dtype=float), np.log2(observations["value"].to_numpy(dtype=float)))
    years, number = observations["year"].to_numpy(), len(dates)
    centred = dates - dates.mean()
    squares = float(centred @ centred)
    slope = float(centred @ logs) / squares
    residuals = logs - logs.mean() - slope * centred
    error = math.sqrt(float(residuals @ residuals) / (number - 2) / squares)
    rate = _make_rate(slope, error, number - 2, level)
    groups = np.unique(years)
    by_year = None
    if len(groups) < number:
        sums = np.array([(centred * residuals)[years == year].sum() for year in groups])
        correction = len(groups) / (len(groups) - 1) * (number - 1) / (number - 2)
        by_year = _make_rate(slope, math.sqrt(correction * float(sums @ sums)) / squares, len(groups) - 1, level)
    return Growth(rate, by_year)


def _make_rate(slope: float, error: float, freedom: int, level: float) -> Rate:
    reach = float(special.stdtrit(freedom, (1 + level) / 2)) * error
    return Rate(slope, slope - reach, slope + reach)


@dataclass(frozen=True)
class Forecast:
    """A fitted forecast."""

    series: Series
    year: int
    level: float
    """Of the intervals and of the growth's, such as 0.95."""
    max_factor: float
    """Intervals whose upper bound is more than this times the lower are refused."""
    predictions: pd.DataFrame
    """candidate, year, value, lower, upper, refusal; one row per candidate and calendar year, from the first
    observation (of the last value from the year after the last) to the year asked for, each for the middle of its year.
    Years up to the last observation have no interval: they are no forecast. `refusal` is None or says why there is no
    forecast, and then the numbers are NaN."""
    backtest: pd.DataFrame
    """See `replay_origins`."""
    ranking: Ranking
    growth: Growth

    @property
    def horizon(self) -> int:
        """Years from the last observation's to the year asked for."""
        return self.year - self.series.last_year

    @property
    def asked(self) -> pd.DataFrame:
        """The predictions of the year asked for with the scores of their candidates, one row per candidate."""
        rows = self.predictions[self.predictions["year"] == self.year]
        return rows.merge(self.ranking.scores, on="candidate", validate="one_to_one")


def fit_forecast(
    series: Series, *, year: int, level: float = DEFAULT_LEVEL, max_factor: float = DEFAULT_MAX_FACTOR
) -> Forecast:
    """Fit every candidate on a series and predict each year up to `year`.

    Raises UserError where `year` does not lie 1 to 25 years after the last observation, or `level` makes
    no interval.
    """
    last = series.last_year
    if not last < year <= last + MAX_YEARS_AHEAD:
        far = f"lies more than {MAX_YEARS_AHEAD} years past the data, too far for any of these fits"
        problem = "lies before or inside the data" if year <= last else far
        allowed = f"give a year from {last + 1} to {last + MAX_YEARS_AHEAD}"
        raise UserError(f"--year {year}: {problem}, which end in {last}; {allowed}.")
    if not 0 < level < 1:
        raise UserError(f"--level {100 * level:g}: expected a percentage between 0 and 100, as in 95.")
    backtest = replay_origins(series, year - last)
    parts = [_predict_years(name, series, year, backtest, level, max_factor) for name in CANDIDATES]
    predictions, ranking = pd.concat(parts, ignore_index=True), rank_candidates(backtest, year - last)
    growth = measure_growth(series.observations, level)
    return Forecast(series, year, level, max_factor, predictions, backtest, ranking, growth)


def _predict_years(
    name: str, series: Series, year: int, backtest: pd.DataFrame, level: float, max_factor: float
) -> pd.DataFrame:
    cases, last = backtest[backtest["candidate"] == name], series.last_year
    years = np.arange(last + 1 if name == LAST_VALUE else series.first_year, year + 1)
    values = _predict(name, series, last, years.astype(float) + 0.5)
    rows, widest = [], math.nan
    for each, value in zip(years.tolist(), values.tolist(), strict=True):
        lower, upper, refusal = math.nan, math.nan, None
        if each > last:
            own = cases[cases["horizon"] == each - last]
            calibration = calibrate(own, each - last)
            # They never shrink with the horizon: what cannot be known in three years is not known better in four, and
            # a narrower interval there comes from having fewer cases.
            width = math.nan if calibration is None else calibration.find_half_width(level)
            widest = float(np.fmax(widest, width))
            factor = 2.0 ** min(widest, MAX_HALF_WIDTH_LOG2) if calibration else math.nan
            lower, upper = value / factor, value * factor
            refusal = _explain_refusal(name, each, own, factor**2, max_factor)
        if not value > 0:
            given = format_amount(value, series.unit)
            refusal = f"{name} would give {given} for {each}, and {series.quantity} is never zero or less"
        if refusal is not None:
            value = lower = upper = math.nan
        rows.append((name, each, value, lower, upper, refusal))
    frame = pd.DataFrame(rows, columns=["candidate", "year", "value", "lower", "upper", "refusal"], dtype=object)
    return frame.astype({"year": "int64", "value": "float64", "lower": "float64", "upper": "float64"})


def _explain_refusal(name: str, year: int, cases: pd.DataFrame, apart: float, max_factor: float) -> str | None:
    """Return why there is no forecast; None where there is one."""
    if failed := int(cases["error_log2"].isna().sum()):
        return (
            f"as far ahead as {year}, {name} gave zero or less in {failed} of {len(cases)} cases, so nothing bounds "
            "its error"
        )
    if math.isnan(apart):
        return f"the backtest has too few cases as far ahead as {year} to calibrate an interval of {name}"
    if apart > max_factor:
        return (
            f"{name} gives no interval for {year} that says anything: its bounds are a factor of {format_plain(apart)} "
            f"apart, more than {max_factor:,g}"
        )
    return None


class Gap(NamedTuple):
    """A demand over a supply, by the winners of both backtests: how many devices one model needs."""

    supply: Forecast
    demand: Forecast
    factor: float
    """What the demand's values are multiplied by to be in the supply's unit."""
    value: float
    lower: float
    upper: float
    """Of the year asked for; NaN where there is no forecast."""
    calibration: Calibration | None


def measure_gap(supply: Forecast, demand: Forecast, *, factor: float) -> Gap:
    """Divide the demand's forecast of the year, times `factor`, by the supply's.

    The interval is calibrated on the errors of the gap itself: in the backtest, the difference of the winners' errors.
    Raises UserError where `factor` is not a number above zero.
    """
    if not 0 < factor < math.inf:
        raise UserError(f"--demand-factor {factor:g}: expected a number above 0, as in 2e-9.")
    first = max(supply.series.last_year, demand.series.last_year) + 1
    calibrations = [_calibrate_gap(supply, demand, each) for each in range(first, supply.year + 1)]
    widths = [math.nan if each is None else each.find_half_width(supply.level) for each in calibrations]
    width = math.nan if calibrations[-1] is None else float(np.nanmax(widths))
    value = factor * _find_winners_value(demand) / _find_winners_value(supply)
    return Gap(supply, demand, factor, value, value / 2**width, value * 2**width, calibrations[-1])


def _find_winners_value(forecast: Forecast) -> float:
    values = forecast.asked.loc[forecast.asked["candidate"] == forecast.ranking.winner, "value"]
    return float(values.iloc[0]) if len(values) else math.nan


def _calibrate_gap(supply: Forecast, demand: Forecast, year: int) -> Calibration | None:
    """Pair the two winners' cases by the year they forecast, each as far ahead as from its own last observation."""
    sides = []
    for side in (demand, supply):
        cases, ahead = side.backtest, year - side.series.last_year
        chosen = (cases["candidate"] == side.ranking.winner) & (cases["horizon"] == ahead)
        sides.append(cases.loc[chosen, ["origin", "year", "error_log2"]])
    paired = sides[0].merge(sides[1], on="year", suffixes=("", "_supply"))
    paired["error_log2"] -= paired["error_log2_supply"]
    return calibrate(paired, year - min(supply.series.last_year, demand.series.last_year))


def describe_forecast(forecast: Forecast) -> list[str]:
    series, asked = forecast.series, forecast.asked
    credit = [f"Data: {series.attribution}."] if series.attribution else []
    return [
        f"{series.subject[0].upper()}{series.subject[1:]}, in {forecast.year}, from {len(series.observations):,} "
        f"observations, {series.first_year} to {series.last_year}:",
        _describe_winner(forecast),
        *(_describe_candidate(row, forecast) for row in asked.itertuples()),
        _describe_growth(forecast),
        *credit,
        *(f"{series.source}: {remark}." for remark in series.remarks),
    ]


def _describe_winner(forecast: Forecast) -> str:
    ranking = forecast.ranking
    if ranking.horizon is None:
        return "No candidate wins: the data span too few years for a backtest, so nothing here was checked."
    shorter = "" if ranking.horizon == forecast.horizon else f" rather than {forecast.horizon}, for want of cases"
    cases = (
        f"{count_things(ranking.horizon, 'year')} ahead{shorter}, from the ends of "
        f"{int(ranking.scores['origins'].max())} years, worth {ranking.num_independent:.1f} independent cases because "
        "their years overlap"
    )
    if ranking.winner is None:
        return f"No candidate wins the backtest ({cases}): none gave a forecast in every case."
    row = forecast.asked.set_index("candidate").loc[ranking.winner]
    given = f"no forecast for {forecast.year}" if row["refusal"] else _format_prediction(row, forecast)
    rivals = "Its errors are smaller than those of the others by more than chance."
    if ranking.rivals:
        names = ", ".join(ranking.rivals)
        rivals = f"So few cases do not tell it apart from {names}: to have the least error among them may be luck."
    return f"The winner of the backtest is {ranking.winner}: {given}. {rivals} The backtest: {cases}."


def _describe_candidate(row: Any, forecast: Forecast) -> str:
    given = f"no forecast; {row.refusal}" if row.refusal else _format_prediction(row._asdict(), forecast)
    horizon = forecast.ranking.horizon
    if horizon is None or row.cases == 0:
        return f"{row.candidate}: {given}. Backtest: the data span too few years for one."
    title = f"Backtest {count_things(horizon, 'year')} ahead"
    if row.refused == row.cases:
        return f"{row.candidate}: {given}. {title}: no forecast in any of {row.cases} cases."
    refused = f", no forecast in {row.refused} of {row.cases} cases" if row.refused else ""
    return f"{row.candidate}: {given}. {title}: off by a factor of {2**row.rms_error_log2:.2f}{refused}."


def _format_prediction(row: Any, forecast: Forecast) -> str:
    unit = forecast.series.unit
    bounds = f"{format_plain(row['lower'])} to {format_amount(row['upper'], unit)}"
    level = f"{100 * forecast.level:g} % prediction interval"
    return f"{format_amount(row['value'], unit)} ({level} {bounds}, calibrated on the backtest)"


def describe_future(series: Series, year: int) -> str:
    """Return how many releases of a series are dated later than `year`, the present one; empty where none is."""
    future = series.releases[series.releases["year"] > year]
    if future.empty:
        return ""
    number, last = len(future), future["year"].max()
    what = "is dated after this year and counts" if number == 1 else "are dated after this year and count"
    return (
        f"{number:,} of {len(series.releases):,} rows {what} as what was observed (the latest in {last}): leave out "
        "what is a plan, or a wrong date"
    )


def _describe_growth(forecast: Forecast) -> str:
    rate, by_year = forecast.growth
    years = rate.doubling_years[0]
    doubling = "no doubling" if math.isinf(years) else f"doubling in {years:.2f} years"
    factors, times = _format_bounds(rate)
    together = "The interval takes the years' errors for independent."
    if by_year is not None:
        bounds = "{} a year, doubling {}".format(*_format_bounds(by_year))
        together = f"The interval takes all errors for independent; if those of one year go together, it is {bounds}."
    return (
        f"Growth (log-linear, {len(forecast.series.observations):,} observations): a factor of {rate.factors[0]:.2f} a "
        f"year ({100 * forecast.level:g} % confidence interval {factors}), {doubling} ({times}). {together}"
    )


def _format_bounds(rate: Rate) -> tuple[str, str]:
    _, shortest, longest = rate.doubling_years
    times = f"{shortest:.2f} to {'none at all' if math.isinf(longest) else f'{longest:.2f}'}"
    return f"{rate.factors[1]:.2f} to {rate.factors[2]:.2f}", "no growth" if math.isinf(shortest) else times


def describe_gap(gap: Gap) -> list[str]:
    unit, demand = gap.supply.series.unit, gap.demand
    lines = [f"Demand: {line}" if not number else line for number, line in enumerate(describe_forecast(demand))]
    lines.append(f"One of the demand's {demand.series.unit} counts as {format_amount(gap.factor, unit)}.")
    subject = f"{gap.supply.year}: demand over supply"
    if math.isnan(gap.value) or gap.calibration is None:
        reason = "one of the two has none" if math.isnan(gap.value) else "their backtests have too few cases in common"
        return [*lines, f"{subject}: no forecast, as {reason}."]
    apart, most = gap.upper / gap.lower, gap.supply.max_factor
    if apart > most:
        return [*lines, f"{subject}: no forecast; its bounds are a factor of {apart:,.3g} apart, more than {most:,g}."]
    return [
        *lines,
        f"{subject} is forecast to be {format_plain(gap.value)}: so many devices for one model "
        f"({100 * gap.supply.level:g} % prediction interval {format_plain(gap.lower)} to {format_plain(gap.upper)}, "
        f"calibrated on {gap.calibration.num_origins} cases of the gap's own backtest, worth "
        f"{gap.calibration.num_independent:.1f} independent ones).",
    ]

"""The document that `benchmatrix forecast --json` prints, in the unit of the series; its JSON Schema by `schema`."""

import math
from typing import Any, Literal

from bench.schema import Document
from collector.forecast.fit import Forecast
from collector.forecast.growth import Rate
from collector.forecast.words import describe_forecast


class Span(Document):
    """A value with the bounds of its interval; None where a bound is not known, or has no end."""

    value: float | None
    low: float | None
    high: float | None


class SeriesDescription(Document):
    """What is forecast."""

    subject: str
    quantity: str
    unit: str
    num_observations: int
    first_year: int
    last_year: int
    source: str
    attribution: str
    """Whom to name for the values; empty: nobody."""


class CandidateForecast(Document):
    """What one candidate gives for the year asked for."""

    candidate: str
    is_winner: bool
    forecast: Span
    interval: Literal["calibrated", "own"] | None
    """Whether the bounds are as wide as the errors of the backtest, or by the fit's own assumptions."""
    refusal: str | None
    """Why there is no forecast; None where there is one."""
    error_factor: float | None
    """By which factor its forecasts of the backtest were off (root mean square of the logs); None without cases."""
    num_cases: int
    num_refused: int
    """Cases of the backtest, and those of them in which it gave no forecast."""


class GrowthDescription(Document):
    """How fast the series grows, by a log-linear fit."""

    factor_per_year: Span
    doubling_years: Span


class ForecastDocument(Document):
    """A forecast of a series for one year, with its backtest."""

    forecast_version: Literal[1] = 1
    series: SeriesDescription
    year: int
    level: float
    """Of the intervals, such as 0.95."""
    winner: str | None
    """The candidate with the least error in the backtest; None where none wins."""
    rivals: tuple[str, ...]
    """The candidates that chance does not tell apart from the winner."""
    candidates: tuple[CandidateForecast, ...]
    growth: GrowthDescription
    sentences: tuple[str, ...]
    """The same for people."""


def make_forecast_document(forecast: Forecast) -> ForecastDocument:
    """Return the document of a forecast."""
    ranking = forecast.ranking
    return ForecastDocument(
        series=describe_series(forecast),
        year=forecast.year,
        level=forecast.level,
        winner=ranking.winner,
        rivals=tuple(ranking.rivals),
        candidates=tuple(_describe_candidate(row, ranking.winner) for row in forecast.asked.to_dict("records")),
        growth=_describe_growth(forecast.growth.rate),
        sentences=tuple(describe_forecast(forecast)),
    )


def describe_series(forecast: Forecast) -> SeriesDescription:
    """Return what a forecast is of."""
    series = forecast.series
    return SeriesDescription(
        subject=series.subject,
        quantity=series.values.quantity,
        unit=series.values.unit,
        num_observations=len(series.observations),
        first_year=series.first_year,
        last_year=series.last_year,
        source=series.values.source,
        attribution=series.values.attribution or "",
    )


def make_span(value: float, low: float, high: float) -> Span:
    """Return the span; None stands for what is no finite number."""
    known = (float(end) if math.isfinite(end) else None for end in (value, low, high))
    return Span(**dict(zip(("value", "low", "high"), known, strict=True)))


def _describe_candidate(row: dict[Any, Any], winner: str | None) -> CandidateForecast:
    error = row["rms_error_log2"]
    return CandidateForecast(
        candidate=row["candidate"],
        is_winner=row["candidate"] == winner,
        forecast=make_span(row["value"], row["lower"], row["upper"]),
        interval=row["interval"],
        refusal=row["refusal"],
        error_factor=2**error if math.isfinite(error) else None,
        num_cases=int(row["cases"]),
        num_refused=int(row["refused"]),
    )


def _describe_growth(rate: Rate) -> GrowthDescription:
    return GrowthDescription(factor_per_year=make_span(*rate.factors), doubling_years=make_span(*rate.doubling_years))


def export_forecast_schema() -> dict[str, Any]:
    """Return the JSON Schema of ForecastDocument."""
    schema = ForecastDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}

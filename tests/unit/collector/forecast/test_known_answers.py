"""Growth that is known of Epoch AI's published files, which are not part of this project."""

import os
from pathlib import Path

import pytest

from collector.forecast.growth import Growth, measure_growth
from collector.forecast.loading import load_series
from collector.forecast.series import Series
from collector.forecast.tables import ValueRequest

FOLDER = Path(
    os.environ.get("BENCHMATRIX_FORECAST_DATA", Path(__file__).resolve().parents[5] / "shared" / "forecast-data")
)
MODELS, HARDWARE, PRICES = (
    FOLDER / name
    for name in ("epoch_ai_models_2025-06.csv", "epoch_ml_hardware_2026-01.csv", "epoch_hardware_prices_2025-03.csv")
)
NOTABLE = ("Notability criteria",)
pytestmark = pytest.mark.skipif(not MODELS.exists(), reason=f"no {MODELS.name}: see docs/forecast.md")


def load(path: Path, kind: str | None = None, **request: object) -> Series:
    return load_series(str(path), ValueRequest(**request), kind)  # type: ignore[arg-type]  # of the fields' types


def measure(series: Series, level: float = 0.95) -> Growth:
    return measure_growth(series.observations, level)


def test_training_compute_of_notable_models_grows_4_68_times_a_year() -> None:
    growth = measure(load(MODELS, quantity="training-compute", where=NOTABLE, since=2010), 0.9)
    assert growth.num_observations == 428
    # Epoch publishes 4.25 to 5.16; least squares with errors of equal spread is wider by 0.4 % on the lower side.
    assert growth.rate.factors == pytest.approx((4.68, 4.25, 5.16), rel=0.004)
    by_95 = measure(load(MODELS, quantity="training-compute", where=NOTABLE, since=2010), 0.95)
    assert by_95.rate.factors == pytest.approx((4.68, 4.15, 5.27), abs=0.005)


def test_parameters_of_notable_models_grow_2_04_times_a_year() -> None:
    growth = measure(load(MODELS, quantity="parameters", where=NOTABLE, since=2010))
    assert growth.rate.factors == pytest.approx((2.04, 1.88, 2.22), abs=0.005)
    assert growth.by_year is not None
    plain, by_year = growth.rate, growth.by_year
    assert by_year.log2 == pytest.approx(plain.log2)
    assert by_year.lower_log2 < plain.lower_log2  # models of one year go together


def test_memory_doubles_in_2_67_years_without_chips_of_sram_and_in_3_06_with_them() -> None:
    assert measure(load(HARDWARE, at_least=1.0)).rate.doubling_years == pytest.approx((2.67, 2.38, 3.05), abs=0.005)
    assert measure(load(HARDWARE)).rate.doubling_years[0] == pytest.approx(3.06, abs=0.005)


def test_record_highs_of_nvidia_double_in_2_24_years() -> None:
    growth = measure(load(HARDWARE, "records", where=("Manufacturer=NVIDIA",)))
    assert growth.rate.doubling_years == pytest.approx((2.24, 1.91, 2.71), abs=0.005)


def test_what_is_left_out_is_counted_and_epoch_is_named() -> None:
    hardware = load(HARDWARE).values
    assert "35 of 170 rows left out: no value in 'Memory (bytes)'" in hardware.remarks
    prices = load(PRICES).values
    assert prices.unit == "USD an hour"
    assert all("Epoch AI" in values.attribution for values in (hardware, prices, load(MODELS).values))

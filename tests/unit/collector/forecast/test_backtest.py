"""The backtest of the forecast: numbers worked out by hand."""

import math

import pandas as pd
import pytest

from collector.forecast.backtest import replay_origins
from collector.forecast.gpu_table import make_gpu_series
from collector.forecast.series import Series
from memory_tables import make_doubling_table, make_noisy_table, make_yearly


def replay(series: Series, max_horizon: int = 3) -> pd.DataFrame:
    return replay_origins(series, max_horizon=max_horizon, level=0.95)


def test_backtest_of_exact_doubling_has_no_error_at_any_horizon() -> None:
    backtest = replay(make_gpu_series(make_doubling_table()))
    log_linear = backtest[backtest["candidate"] == "log-linear"]
    three_ahead = log_linear[log_linear["horizon"] == 3]
    assert three_ahead["origin"].tolist() == [2015, 2016, 2017]  # eight years are known at the end of 2015
    assert three_ahead["year"].tolist() == [2018, 2019, 2020]
    assert log_linear["horizon"].value_counts().to_dict() == {1: 5, 2: 4, 3: 3}
    assert log_linear["error_log2"].tolist() == pytest.approx([0.0] * 12, abs=1e-9)
    last = backtest[(backtest["candidate"] == "last value") & (backtest["horizon"] == 2)]
    assert last["error_log2"].tolist() == pytest.approx([-1.0] * 4)  # half of what came out two years later


def test_backtest_looks_no_further_ahead_than_its_data_reach_back() -> None:
    backtest = replay(make_yearly(2000, [2.0**year for year in range(20)]), max_horizon=19)
    furthest = backtest.groupby("origin")["horizon"].max()
    assert furthest[2007] == 7  # 2000 to 2007
    assert furthest[2009] == 9
    assert furthest[2012] == 7  # the data end in 2019


def test_backtest_never_sees_what_came_after_its_origin() -> None:
    table = make_noisy_table()
    changed = table.assign(memory_gb=table["memory_gb"].where(table["year"] < 2021, table["memory_gb"] * 100))
    before, after = (
        backtest[backtest["origin"] <= 2020].reset_index(drop=True)
        for backtest in (replay(make_gpu_series(each)) for each in (table, changed))
    )
    pd.testing.assert_series_equal(before["predicted"], after["predicted"])
    assert (before["error_log2"] - after["error_log2"])[before["year"] >= 2021].max() == pytest.approx(math.log2(100))


def test_a_prediction_of_zero_or_less_is_refused_and_has_no_error() -> None:
    # 2004 to 2011 lie on the parabola 30 - (year - 2006)^2: in 2014, where 5 GB came out, it is at 30 - 64 = -34 GB.
    memory_gb = [30.0 - (year - 2006) ** 2 for year in range(2004, 2012)] + [5.0] * 4
    backtest = replay(make_yearly(2004, memory_gb))
    chosen = (backtest["candidate"] == "polynomial 2") & (backtest["origin"] == 2011) & (backtest["year"] == 2014)
    case = backtest[chosen].iloc[0]
    assert case["refused"]
    assert not case["inside"]
    assert case[["error_log2", "predicted"]].isna().all()


def test_whether_an_interval_held_the_truth_is_missing_where_there_is_none() -> None:
    backtest = replay(make_gpu_series(make_noisy_table()))
    has_own = backtest.groupby("candidate")["inside"].apply(lambda inside: bool(inside.notna().all()))
    none_of_their_own = ["last value", "quantile regression", "record highs"]
    assert sorted(str(name) for name in has_own.index[~has_own]) == none_of_their_own


def test_short_series_has_no_backtest() -> None:
    assert replay(make_yearly(2010, [1, 2, 3, 4, 6, 8, 11, 16])).empty

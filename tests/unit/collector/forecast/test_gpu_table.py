"""The table of GPUs: what is read of it and what is refused."""

import math
import os
from pathlib import Path

import pandas as pd
import pytest

from bench.errors import UserError
from collector.forecast.gpu_table import load_gpu_table
from memory_tables import GOOD_ROW, HEADER, read_row

# Epoch's name for each of our rows that its file holds with a memory or a date.
EPOCH_NAMES = {
    "GeForce GTX 280": "NVIDIA GeForce GTX 280",
    "GeForce GTX 580": "NVIDIA GeForce GTX 580",
    "Tesla K20": "NVIDIA Tesla K20c",
    "Tesla K20X": "NVIDIA Tesla K20X",
    "GeForce GTX TITAN": "NVIDIA GeForce GTX TITAN",
    "Quadro K6000": "NVIDIA Quadro K6000",
    "Tesla K40": "NVIDIA Tesla K40s",
    "Tesla K80 (one of two GPUs)": "NVIDIA Tesla K80",
    "GeForce GTX TITAN X": "NVIDIA GeForce GTX TITAN X",
    "Tesla M60 (one of two GPUs)": "NVIDIA TESLA M60",
    "Tesla M40": "NVIDIA M40",
    "Tesla P100": "NVIDIA P100",
    "GeForce GTX 1080": "NVIDIA GeForce GTX 1080",
    "Tesla P40": "NVIDIA P40",
    "Quadro P6000": "NVIDIA Quadro P6000",
    "GeForce GTX 1080 Ti": "NVIDIA GeForce GTX 1080 Ti",
    "Tesla V100": "NVIDIA Tesla V100 SXM2",
    "TITAN V": "NVIDIA Titan V",
    "Tesla V100 32 GB": "NVIDIA Tesla V100 SXM2 32 GB",
    "Quadro RTX 8000": "NVIDIA Quadro RTX 8000",
    "Tesla T4": "NVIDIA Tesla T4",
    "GeForce RTX 2080 Ti": "NVIDIA GeForce RTX 2080 Ti 11GB",
    "Tesla V100S": "NVIDIA Tesla V100S PCIe 32 GB",
    "A100 40 GB": "NVIDIA A100 SXM4 40 GB",
    "GeForce RTX 3090": "NVIDIA GeForce RTX 3090",
    "RTX A6000": "NVIDIA RTX A6000",
    "A40": "NVIDIA A40 PCIe",
    "A100 80 GB": "NVIDIA A100 SXM4 80 GB",
    "A10": "NVIDIA A10 PCIe",
    "Instinct MI250X": "AMD Radeon Instinct MI250X",
    "H100": "NVIDIA H100 SXM5 80GB",
    "GeForce RTX 4090": "NVIDIA GeForce RTX 4090",
    "L40": "NVIDIA L40",
    "Radeon RX 7900 XTX": "AMD Radeon RX 7900 XTX",
    "RTX 6000 Ada Generation": "NVIDIA RTX 6000 Ada Generation",
    "Data Center GPU Max 1100": "Intel Data Center GPU Max 1100",
    "Data Center GPU Max 1550": "Intel Data Center GPU Max 1550",
    "L4": "NVIDIA L4",
    "Instinct MI300X": "AMD Instinct MI300X",
    "H200": "NVIDIA H200 SXM",
    "Instinct MI325X": "AMD Instinct MI325X",
    "B200": "NVIDIA B200",
    "Instinct MI355X": "AMD Instinct MI355X",
    "B300": "NVIDIA GB300 (Blackwell Ultra)",
}
MEMORY_TOLERANCE = 0.03  # Epoch counts some megabytes in thousands: 1.024 for 1 GB, 1.536 for 1.5 GB
RELEASE_TOLERANCE_MONTHS = 2
EPOCH_DIFFERENCES = {
    "Tesla K80 (one of two GPUs)": "memory: Epoch counts the board with both GPUs",
    "Tesla M60 (one of two GPUs)": "memory: Epoch counts the board with both GPUs",
    "H200": "release: Epoch has the later NVL version's month",
}


def test_shipped_table_covers_every_year_with_named_and_sourced_gpus() -> None:
    table = load_gpu_table()
    assert len(table) >= 40
    assert set(table["year"]) == set(range(2008, 2027))
    assert table["name"].is_unique
    assert table["source"].str.len().min() > 20


def test_release_becomes_the_decimal_year_at_the_middle_of_its_month() -> None:
    t4 = read_row(load_gpu_table().set_index("name"), "Tesla T4")
    assert t4["memory_gb"] == 16.0
    assert t4["year"] == 2018
    assert t4["date"] == pytest.approx(2018 + 8.5 / 12)


def test_own_table_may_hold_further_columns_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"{HEADER},price\n{GOOD_ROW},2299\n", encoding="utf-8-sig")
    assert load_gpu_table(path)["name"].tolist() == ["Tesla T4"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["line 1", "'name' is missing", HEADER]),
        (f"{HEADER.replace('memory_gb', 'memory')}\n{GOOD_ROW}\n", ["line 1", "'memory_gb'", "found 'memory': rename"]),
        (f"{HEADER.replace(',', ';')}\n", ["line 1", "'name' is missing"]),
        (f"{HEADER}\n{GOOD_ROW}\nX,AMD,2019-01,16 GB,datacenter,s\n", ["line 3", "memory_gb", "'16 GB'", "as in 16"]),
        (f"{HEADER}\nX,AMD,2019-01,0,datacenter,s\n", ["line 2", "memory_gb", "'0'", "from 1e-06 to 1e+09"]),
        (f"{HEADER}\nX,AMD,2019-01,1e306,datacenter,s\n", ["line 2", "memory_gb", "'1e306'", "from 1e-06 to 1e+09"]),
        (f"{HEADER}\nX,AMD,2019-01,nan,datacenter,s\n", ["line 2", "memory_gb", "'nan'", "from 1e-06 to 1e+09"]),
        (f"{HEADER}\nX,AMD,2019-01,-8,datacenter,s\n", ["line 2", "memory_gb", "'-8'"]),
        (f"{HEADER}\nX,AMD,2019-01,nan,datacenter,s\n", ["line 2", "memory_gb", "'nan'"]),
        (f"{HEADER}\nX,AMD,2019-01,1e999,datacenter,s\n", ["line 2", "memory_gb", "'1e999'"]),
        (f"{HEADER}\nX,AMD,2019-01,,datacenter,s\n", ["line 2", "memory_gb", "''"]),
        (f"{HEADER}\nX,AMD,2019-13,8,datacenter,s\n", ["line 2", "release", "'2019-13'", "2018-09"]),
        (f"{HEADER}\nX,AMD,March 2019,8,datacenter,s\n", ["line 2", "release", "'March 2019'"]),
        (f"{HEADER}\nX,AMD,2019-01,8,server,s\n", ["line 2", "segment", "'server'", "workstation"]),
        (f"{HEADER}\n ,AMD,2019-01,8,datacenter,s\n", ["line 2", "name", "empty"]),
        (f"{HEADER}\nX,AMD,2019-01,8,datacenter\n", ["line 2", "more or fewer fields"]),
        (f"{HEADER}\nX,AMD,2019-01,8,datacenter,a, b\n", ["line 2", "more or fewer fields", "quote a text"]),
        (f'{HEADER}\nX,AMD,2019-01,8,datacenter,"never closed\n', ["not a CSV file"]),
    ],
)
def test_faulty_table_is_refused_with_file_line_and_column(tmp_path: Path, content: str, words: list[str]) -> None:
    path = tmp_path / "own.csv"
    path.write_text(content)
    with pytest.raises(UserError) as caught:
        load_gpu_table(path)
    assert [word for word in [str(path), *words] if word not in str(caught.value)] == []


def test_table_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, words in [(tmp_path / "none.csv", "no such file"), (tmp_path, "directory"), (binary, "UTF-8")]:
        with pytest.raises(UserError, match=words) as caught:
            load_gpu_table(path)
        assert str(path) in str(caught.value)


def find_epoch_file() -> Path:
    beside = Path(__file__).resolve().parents[5] / "shared" / "forecast-data"
    return Path(os.environ.get("BENCHMATRIX_FORECAST_DATA", beside)) / "epoch_ml_hardware_2026-01.csv"


def describe_difference(row: pd.Series, epoch: pd.Series) -> str | None:
    memory_gb = epoch["Memory (bytes)"] / 1e9
    if not math.isnan(memory_gb) and abs(row["memory_gb"] / memory_gb - 1) > MEMORY_TOLERANCE:
        return f"memory: {row['memory_gb']:g} GB here, {memory_gb:g} GB there"
    year, month = (int(part) for part in epoch["Release date"].split("-")[:2])
    if abs(row["date"] - (year + (month - 0.5) / 12)) * 12 > RELEASE_TOLERANCE_MONTHS + 0.5:
        return f"release: {row['release']} here, {epoch['Release date']} there"
    return None


@pytest.mark.skipif(not find_epoch_file().exists(), reason=f"no {find_epoch_file().name}: see docs/forecast.md")
def test_shipped_table_agrees_with_epoch_but_for_the_differences_explained() -> None:
    epoch = pd.read_csv(find_epoch_file()).set_index("Hardware name")
    table = load_gpu_table().set_index("name")
    differences = {
        ours: difference
        for ours, theirs in EPOCH_NAMES.items()
        if (difference := describe_difference(read_row(table, ours), read_row(epoch, theirs)))
    }
    assert set(differences) == set(EPOCH_DIFFERENCES), differences
    kinds = {name: text.split(":")[0] for name, text in EPOCH_DIFFERENCES.items()}
    assert {name: text.split(":")[0] for name, text in differences.items()} == kinds


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gpus.csv"
    path.write_text(f"{HEADER},memory_gb\n{GOOD_ROW},112\n")
    with pytest.raises(UserError, match="line 1: has several columns 'memory_gb'"):
        load_gpu_table(path)

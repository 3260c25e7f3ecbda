"""Tables of dated values: what is read of them, what is left out and counted, and what is refused."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.errors import UserError
from collector.forecast.loading import load_series
from collector.forecast.publications import EPOCH_HARDWARE, EPOCH_MODELS
from collector.forecast.tables import ValueRequest, load_values, parse_date
from memory_tables import GOOD_ROW, HEADER

EPOCH = (
    "Hardware name,Manufacturer,Type,Notes,Release date,Memory (bytes)\n"
    'A,NVIDIA,GPU,"two\nlines",2020-01-01,16e9\n'
    "B,AMD,GPU,,2021-06-15,\n"
    "C,NVIDIA,GPU,,,32e9\n"
    "D,NVIDIA,GPU,,2022-12-31,64000000000.0\n"
    "E,NVIDIA,GPU,,2023-05-01,230000000\n"
)
PLAIN = ValueRequest()


def write(tmp_path: Path, text: str, name: str = "own.csv") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_own_table_needs_a_date_and_a_value(tmp_path: Path) -> None:
    values = load_values(write(tmp_path, "value,date\n3,2021\n2.5e3,2020-07\n1,2020-01-01\n"), PLAIN)
    assert values.rows["value"].tolist() == [1.0, 2500.0, 3.0]
    assert values.rows["date"].tolist() == pytest.approx([2020 + 0.5 / 366, 2020 + 6.5 / 12, 2021.5])
    assert values.rows["year"].tolist() == [2020, 2020, 2021]
    assert (values.quantity, values.unit, values.attribution, values.remarks) == ("value", "value", "", ())


def test_columns_unit_and_names_are_chosen_by_options(tmp_path: Path) -> None:
    source = write(tmp_path, "day,x\n", "other_columns.csv")
    with pytest.raises(UserError, match="has no column 'date'"):
        load_values(source, PLAIN)
    source = write(tmp_path, "day,price,chip\n2024-01-01,3.5,H100\n")
    request = ValueRequest(date="day", value="price", name="chip", unit="USD an hour")
    values = load_values(source, request)
    assert values.rows.loc[0, "name"] == "H100"
    assert (values.quantity, values.unit) == ("price", "USD an hour")


def test_epochs_hardware_is_known_by_its_columns_and_named_in_the_result(tmp_path: Path) -> None:
    values = load_values(write(tmp_path, EPOCH), PLAIN)
    assert values.rows["name"].tolist() == ["A", "D", "E"]
    assert values.rows["value"].tolist() == pytest.approx([16.0, 64.0, 0.23])
    assert values.unit == "GB"
    assert values.attribution == EPOCH_HARDWARE.attribution
    assert "https://epoch.ai/data/machine-learning-hardware, CC BY" in values.attribution
    assert values.remarks == (
        "1 of 5 rows left out: no value in 'Memory (bytes)'",
        "1 of 5 rows left out: no date in 'Release date'",
    )


def test_the_former_name_of_epochs_memory_column_is_read_too(tmp_path: Path) -> None:
    older = EPOCH.replace("Memory (bytes)", "Memory size per board (Byte)")
    assert load_values(write(tmp_path, older), PLAIN).rows["value"].iloc[0] == 16.0


def test_rows_are_selected_by_column_value_least_amount_and_year(tmp_path: Path) -> None:
    source = write(tmp_path, EPOCH)
    values = load_values(source, ValueRequest(where=("Manufacturer=NVIDIA",), at_least=1.0, since=2021))
    assert values.rows["name"].tolist() == ["D"]
    assert "1 of 5 rows left out: not selected by --where" in values.remarks
    assert "1 of 5 rows left out: below 1 GB" in values.remarks
    assert "1 of 5 rows left out: before 2021" in values.remarks
    assert load_values(source, ValueRequest(where=("Notes",))).rows["name"].tolist() == ["A"]


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    path = tmp_path / "own.parquet"
    dates = pd.to_datetime(["2020-03-01", "NaT", "2021-03-01"])
    pd.DataFrame({"date": dates, "value": [1.5, 2.0, None]}).to_parquet(path)
    values = load_values(str(path), PLAIN)
    assert values.rows["value"].tolist() == [1.5]
    assert values.rows["date"].iloc[0] == pytest.approx(2020 + 60.5 / 366)
    assert len(values.remarks) == 2


@pytest.mark.parametrize(
    ("text", "request_", "words"),
    [
        ("date,value\n2020,x\n", PLAIN, ["line 2, column value", "'x' is not a number", "2.5e9"]),
        ("date,value\n2020,nan\n", PLAIN, ["line 2", "'nan'"]),
        ("date,value\n2020,1e306\n", PLAIN, ["line 2, column value", "'1e306' is beyond 1e-100 to 1e+100"]),
        ("date,value\n2020,5e-324\n", PLAIN, ["line 2, column value", "'5e-324' is beyond", "another unit"]),
        ("date,value\n2020,0\n", PLAIN, ["line 2, column value", "0 is not above zero", "--at-least"]),
        ("date,value\n2020-13,1\n", PLAIN, ["line 2, column date", "'2020-13' is not a date", "2018-09-13"]),
        ("date,value\nMay 2020,1\n", PLAIN, ["'May 2020'"]),
        ("date,value\n2020,1,2\n", PLAIN, ["line 2", "more or fewer fields"]),
        ("date,value\n2020,1\n", ValueRequest(value="valu"), ["no column 'valu'", "--value", "'value'"]),
        ("date,value\n2020,1\n", ValueRequest(where=("kind=x",)), ["no column 'kind'", "--where"]),
        ("date,value\n2020,1\n", ValueRequest(quantity="memory"), ["--quantity memory", "no published table"]),
        (EPOCH, ValueRequest(quantity="weight"), ["--quantity weight", "memory, release-price"]),
        ("", PLAIN, ["no column 'date'", "none"]),
        ('date,value\n2020,"1\n', PLAIN, ["is not CSV"]),
        ("PAR1 but not really", PLAIN, ["begins like a Parquet file"]),
        ("date;value\n2020;1\n", PLAIN, ["line 1", "separated by ';'", "expected commas"]),
        ("date\tvalue\n2020\t1\n", PLAIN, ["line 1", "separated by '\\t'"]),
        ("date,value,value\n2020,1,2\n", PLAIN, ["line 1", "several columns 'value'"]),
    ],
)
def test_faulty_table_is_refused_with_file_line_and_column(
    tmp_path: Path, text: str, request_: ValueRequest, words: list[str]
) -> None:
    source = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load_values(source, request_)
    expected = words if request_.quantity == "weight" else [source, *words]
    assert [word for word in expected if word not in str(caught.value)] == []


@pytest.mark.parametrize("text", ["2020-02-30", "20200101", "2020-1-1", "", "x2020"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="here: .* is not a date"):
        parse_date(text, "here")


def test_missing_file_and_file_that_is_no_text_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.csv: there is no such file"):
        load_values(str(tmp_path / "none.csv"), PLAIN)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"binary\.csv: is neither Parquet nor CSV"):
        load_values(str(tmp_path / "binary.csv"), PLAIN)


@pytest.fixture
def server_url() -> Iterator[str]:
    """Serve Epoch's table under /hardware.csv, and 403 for the rest or to who does not say who asks."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path == "/hardware.csv" and "benchmatrix" in self.headers["User-Agent"]
            self.send_response(200 if is_known else 403)
            self.end_headers()
            self.wfile.write(EPOCH.encode() if is_known else b"no")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_url_is_read_like_a_file_and_its_errors_are_one_message(server_url: str) -> None:
    values = load_values(f"{server_url}/hardware.csv", PLAIN)
    assert (len(values.rows), values.source) == (3, f"{server_url}/hardware.csv")
    with pytest.raises(UserError, match=r"other\.csv: cannot be downloaded \(HTTP status 403\)"):
        load_values(f"{server_url}/other.csv", PLAIN)


def test_table_of_gpus_is_a_frontier_and_another_table_all_of_its_releases(tmp_path: Path) -> None:
    rows = "".join(f"{GOOD_ROW.replace('2018', str(year))}\n" * 2 for year in range(2010, 2019))
    gpus = load_series(write(tmp_path, f"{HEADER}\n{rows}", "gpus.csv"), PLAIN)
    assert (gpus.kind, len(gpus.observations), len(gpus.releases)) == ("frontier", 9, 18)
    chosen = load_series(write(tmp_path, f"{HEADER}\n{rows}", "gpus.csv"), ValueRequest(where=("vendor=NVIDIA",)))
    assert (chosen.kind, chosen.values.unit) == ("frontier", "GB")
    prices = "date,value\n" + "".join(f"{year},{year}\n" for year in range(2010, 2019))
    assert load_series(write(tmp_path, prices), PLAIN).kind == "all"
    with pytest.raises(UserError, match="--series best: unknown; it takes frontier, median, all, records"):
        load_series(None, PLAIN, "best")


def test_publications_are_told_apart_by_columns_of_their_own() -> None:
    assert not EPOCH_HARDWARE.marks & EPOCH_MODELS.marks


def test_a_file_named_parquet_that_is_none_is_not_read_as_csv(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"own\.parquet: is no Parquet file, which would begin with PAR1"):
        load_values(write(tmp_path, "date,value\n2020,1\n", "own.parquet"), PLAIN)


@pytest.mark.parametrize(
    "url", ["https://u:hunter2@h/t.csv", "http://hunter2@h", "ftp://u:hunter2@h/x", "https:u:hunter2@h"]
)
def test_a_url_with_a_password_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UserError, match="the URL of a table holds a user or a password") as caught:
        load_values(url, PLAIN)
    assert "hunter2" not in str(caught.value)


def test_urls_of_other_schemes_are_refused_before_a_file_of_this_name_is_looked_for() -> None:
    with pytest.raises(UserError, match=r"ftp://host/t\.csv: URLs of ftp are not read, only https and http"):
        load_values("ftp://host/t.csv", PLAIN)


def test_a_parquet_file_with_texts_that_are_no_utf8_is_refused(tmp_path: Path) -> None:
    offsets = pa.array([0, 2], pa.int32()).buffers()[1]
    name = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"name": name, "date": ["2020"], "value": [1.0]}), path)
    with pytest.raises(UserError, match="table.parquet: begins like a Parquet file and cannot be read as one"):
        load_values(str(path), PLAIN)


@pytest.mark.parametrize("form", ["plain", "quoted", "lines end with CR"])
def test_a_table_of_gpus_is_known_however_its_first_line_is_written(form: str, tmp_path: Path) -> None:
    rows = "".join(GOOD_ROW.replace("2018-09", f"{year}-09") + "\n" for year in range(2008, 2018))
    quoted = ",".join(f'"{name}"' for name in HEADER.split(","))
    text = f"{HEADER if form == 'plain' else quoted}\n{rows}"
    path = tmp_path / "gpus.csv"
    path.write_bytes((text.replace("\n", "\r") if form == "lines end with CR" else text).encode())
    series = load_series(str(path), PLAIN)
    assert (series.kind, series.values.quantity) == ("frontier", "memory of one GPU")


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), -float("inf")])
def test_an_amount_that_is_no_number_is_refused(amount: float, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--at-least .*: expected a number"):
        load_values(write(tmp_path, "value,date\n3,2021\n"), ValueRequest(at_least=amount))


@pytest.mark.parametrize(
    "metadata",
    [
        b"{}",
        b"[]",
        b"1",
        b"[" * 100_000,
        b'{"index_columns": ["date"], "columns": [], "column_indexes": []}',
        b'{"index_columns": [7], "columns": [], "column_indexes": []}',
        b'{"index_columns": [], "columns": [1], "column_indexes": []}',
        b'{"index_columns": [], "columns": [{"name": "value", "field_name": "value", "pandas_type": "x", '
        b'"numpy_type": "period[D]", "metadata": null}], "column_indexes": []}',
    ],
)
def test_what_pandas_says_of_a_parquet_file_changes_nothing(metadata: bytes, tmp_path: Path) -> None:
    table = pa.table({"date": ["2020-01-01", "2021-01-01"], "value": [2.0, 3.0]})
    path = tmp_path / "own.parquet"
    pq.write_table(table.replace_schema_metadata({b"pandas": metadata}), path)
    assert load_values(str(path), PLAIN).rows["value"].tolist() == [2.0, 3.0]


def test_the_index_of_a_frame_may_be_its_date(tmp_path: Path) -> None:
    path = tmp_path / "own.parquet"
    pd.DataFrame({"date": ["2020", "2021"], "value": [2.0, 3.0]}).set_index("date").to_parquet(path)
    assert load_values(str(path), PLAIN).rows["year"].tolist() == [2020, 2021]


def test_whole_years_of_which_some_are_missing_are_years(tmp_path: Path) -> None:
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table({"date": [2020, None, 2021], "value": [2.0, 2.5, 3.0]}), path)
    values = load_values(str(path), PLAIN)
    assert values.rows["year"].tolist() == [2020, 2021]
    assert values.remarks == ("1 of 3 rows left out: no date in 'date'",)

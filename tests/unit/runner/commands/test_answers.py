"""The commands that say and draw what a run found: sentences, JSON with its schema, files, and messages."""

import json
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from answered_runs import make_framework_pair
from bench.errors import UserError
from bench.store import Store
from factories import RUN_ID, make_run, put_documents
from runner.cli import app
from runner.commands.json_documents import FilesDocument


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a store with a run in which TensorFlow takes one and a half times as long."""
    url = f"file://{tmp_path_factory.mktemp('store')}"
    results = make_framework_pair(1.5)
    put_documents(Store.open(url), make_run([results[0].cell, results[-1].cell]), results)
    return url


def test_answers_are_sentences_and_a_document_of_its_schema(store: str) -> None:
    text = CliRunner().invoke(app, ["answers", "--store", store], catch_exceptions=False).output
    assert "What the run says:\n- conv6 train, CPU, batch 64, 32 px: PyTorch eager (" in text
    assert "What it does not say:\n- " in text
    printed = CliRunner().invoke(app, ["answers", "--store", store, "--json"], catch_exceptions=False).stdout
    schema = CliRunner().invoke(app, ["schema", "answers"], catch_exceptions=False).stdout
    document = json.loads(printed)
    jsonschema.validate(document, json.loads(schema))
    assert document["run_id"] == RUN_ID
    assert document["answers"][0]["rule"] == "fastest"


def test_a_forecast_is_a_document_of_its_schema() -> None:
    printed = CliRunner().invoke(app, ["forecast", "--year", "2030", "--json"], catch_exceptions=False).stdout
    schema = CliRunner().invoke(app, ["schema", "forecast"], catch_exceptions=False).stdout
    document = json.loads(printed)
    jsonschema.validate(document, json.loads(schema))
    assert document["winner"] in [one["candidate"] for one in document["candidates"]]


def test_a_plot_of_nothing_says_what_it_needs(store: str, tmp_path: Path) -> None:
    arguments = ["plot", "scaling", "--store", store, "--output", str(tmp_path / "x.svg")]
    with pytest.raises(UserError, match="has nothing to draw; it needs the same cells on one GPU and on several"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []


def test_a_plot_is_written_to_the_file_and_its_caption_printed(store: str, tmp_path: Path) -> None:
    arguments = ["plot", "frameworks", "--store", store, "--output", str(tmp_path / "x.svg")]
    output = CliRunner().invoke(app, arguments, catch_exceptions=False).output
    assert (tmp_path / "x.svg").read_text().startswith("<svg")
    assert "Which framework is faster?" in output

    printed = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False).stdout
    assert FilesDocument.model_validate_json(printed).files == (str(tmp_path / "x.svg"),)


def test_a_report_is_the_file_that_is_named(store: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.html"
    CliRunner().invoke(app, ["report", "--store", store, "--output", str(path)], catch_exceptions=False)
    assert path.is_file()

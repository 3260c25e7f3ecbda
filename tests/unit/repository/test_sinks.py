"""Every place that writes is known, and what makes foreign texts harmless there is tried with one that is not.

A place that is not in SINKS fails the first test: find out which function makes its texts harmless, and name it.
"""

import io
import re
from collections.abc import Callable
from pathlib import Path

import altair as alt
import pandas as pd
import pytest

from collector.claims.page import escape_markdown
from collector.csv_files import write_csv
from collector.files import replace_text
from collector.report.html import open_templates
from collector.report.plots.picture_files import save_plot
from collector.report.typeset import escape_latex
from collector.versus.markdown import escape_comment
from collector.visible_text import replace_steering
from runner.kubernetes.syntax import check_dns_label, check_label_value
from runner.nights.webhooks import escape_slack
from runner.output import make_console
from runner.terminal_text import BIDIRECTIONAL_MARKS, echo, format_message
from sinks import list_sinks

TERMINAL = "consoles and `echo` replace or escape what is unprintable"
FILE = "`replace_text` replaces what steers; the markup of each format is escaped by the function that is tried below"
CSV = "`write_csv` replaces what steers and what a spreadsheet would calculate"
PICTURE = "drawn by Vega: pixels, or texts of an XML that it escapes; an SVG passes `replace_text`"
DOCUMENT = "JSON, Parquet or YAML of an encoder, read by programs; people see it through the others"
API_SERVER = "JSON of an encoder; names and labels have the types of `runner.kubernetes.syntax`"
LOG = "a container's log: its runner shows it through a console"
OWN = "texts and bytes of our own"

SINKS = {
    ("collector/audit/page.py", "replace_text"): FILE,
    ("collector/claims/page.py", "replace_text"): FILE,
    ("collector/export.py", "ParquetWriter"): DOCUMENT,
    ("collector/export.py", "replace_file"): DOCUMENT,
    ("collector/export.py", "write_csv"): CSV,
    ("collector/export.py", "write_table"): DOCUMENT,
    ("collector/files.py", "fdopen"): FILE,
    ("collector/files.py", "open"): FILE,
    ("collector/files.py", "replace_file"): FILE,
    ("collector/forecast/source_files.py", "Request"): "the user's own URL, without a body",
    ("collector/report/html.py", "replace_text"): FILE,
    ("collector/report/paper_figures.py", "replace_file"): PICTURE,
    ("collector/report/paper_figures.py", "replace_text"): PICTURE,
    ("collector/report/paper_figures.py", "svg_to_pdf"): PICTURE,
    ("collector/report/paper_figures.py", "vegalite_to_png"): PICTURE,
    ("collector/report/paper_figures.py", "vegalite_to_svg"): PICTURE,
    ("collector/report/plots/picture_files.py", "replace_file"): PICTURE,
    ("collector/report/plots/picture_files.py", "replace_text"): PICTURE,
    ("collector/report/plots/picture_files.py", "to_html"): FILE,
    ("collector/report/plots/picture_files.py", "vegalite_to_png"): PICTURE,
    ("collector/report/plots/picture_files.py", "vegalite_to_svg"): PICTURE,
    ("collector/report/site.py", "replace_text"): FILE,
    ("collector/results/dataset/parts.py", "put_with_short_retries"): DOCUMENT,
    ("collector/results/dataset/parts.py", "write_table"): DOCUMENT,
    ("images/bench/src/bench/__main__.py", "print"): OWN,
    ("images/bench/src/bench/delivery.py", "print"): LOG,
    ("images/bench/src/bench/delivery.py", "put_with_short_retries"): DOCUMENT,
    ("images/bench/src/bench/foreign_files.py", "fdopen"): "opened for reading",
    ("images/bench/src/bench/interruption.py", "print"): LOG,
    ("images/bench/src/bench/probes/cuda_start.py", "print"): OWN,
    ("images/bench/src/bench/probes/memory.py", "write_text"): OWN,
    ("images/bench/src/bench/program.py", "print"): LOG,
    ("images/bench/src/bench/program.py", "print_exc"): LOG,
    ("images/bench/src/bench/sigterm.py", "print"): LOG,
    ("images/bench/src/bench/store/obstore_calls.py", "put"): DOCUMENT,
    ("images/bench/src/bench/tenants/meeting.py", "put_with_short_retries"): DOCUMENT,
    ("runner/commands/access.py", "replace_text"): FILE,
    ("runner/commands/claims.py", "replace_text"): FILE,
    ("runner/commands/compare.py", "replace_text"): FILE,
    ("runner/commands/cost.py", "replace_text"): FILE,
    ("runner/commands/images.py", "replace_text"): FILE,
    ("runner/commands/keys.py", "fdopen"): OWN,
    ("runner/commands/watch.py", "replace_text"): FILE,
    ("runner/completion_files.py", "replace_file"): "the shell's own file, and lines in which a path is quoted",
    ("runner/completion_files.py", "replace_text"): OWN,
    ("runner/kubernetes/access_reviews.py", "request"): API_SERVER,
    ("runner/kubernetes/cancellation.py", "put_with_short_retries"): DOCUMENT,
    ("runner/kubernetes/doctor/namespace_checks.py", "request"): API_SERVER,
    ("runner/kubernetes/night_events.py", "request"): API_SERVER,
    ("runner/kubernetes/node_fault_tracker.py", "put"): DOCUMENT,
    ("runner/kubernetes/placements.py", "put"): DOCUMENT,
    ("runner/kubernetes/prepull.py", "request"): API_SERVER,
    ("runner/kubernetes/recording.py", "put"): DOCUMENT,
    ("runner/kubernetes/rendering/manifest_files.py", "replace_text"): DOCUMENT,
    ("runner/kubernetes/setup.py", "request"): API_SERVER,
    ("runner/kubernetes/submission.py", "request"): API_SERVER,
    ("runner/local/executor.py", "put"): DOCUMENT,
    ("runner/local/host_lock.py", "pwrite"): OWN,
    ("runner/local/mps.py", "open"): "the output of NVIDIA's daemon, of which a message shows the last line",
    ("runner/local/process.py", "write_text"): OWN,
    ("runner/local/virtual_environments.py", "open"): OWN,
    ("runner/local/virtual_environments.py", "write_text"): OWN,
    ("runner/nights/confirmation.py", "replace_text"): DOCUMENT,
    (
        "runner/nights/display.py",
        "generate_latest",
    ): "Prometheus' client escapes labels",
    ("runner/runs.py", "put_new"): DOCUMENT,
    ("runner/nights/watch.py", "put"): DOCUMENT,
    ("runner/nights/webhooks.py", "Request"): "JSON of an encoder; texts for Slack pass `escape_slack`",
    ("runner/nights/webhooks.py", "put"): DOCUMENT,
    ("runner/output.py", "PrintableConsole"): TERMINAL,
    ("runner/output.py", "open"): "/dev/null",
    ("runner/reporting/publication.py", "put"): "the report's bytes, as they were written to its file",
    ("runner/reporting/report_files.py", "replace_text"): FILE,
    ("runner/reporting/site_files.py", "replace_text"): FILE,
    ("runner/reporting/site_files.py", "to_csv"): "hashed and not written",
    ("runner/retention/removal.py", "put"): DOCUMENT,
    ("runner/start.py", "open"): "/dev/null, where stdout or stderr was closed",
    ("runner/terminal_text.py", "print"): TERMINAL,
}

HOSTILE = "=cmd()|<b>&</script><script>alert(1)</script>\x1b[31m\x07\x9b2J\u202egnp\u2066\u061c\r"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def test_every_place_that_writes_is_known() -> None:
    found = list_sinks()
    assert found - set(SINKS) == set(), "new: name what makes foreign texts harmless there"
    assert set(SINKS) - found == set(), "gone: take it out"


def write_file(text: str, folder: Path) -> str:
    replace_text(folder / "file", text)
    return (folder / "file").read_bytes().decode()


def write_table(text: str, folder: Path) -> str:
    file = io.BytesIO()
    write_csv(pd.DataFrame({"a": [text], "b": ["y"]}), file)
    return file.getvalue().decode()


def write_plot(text: str, folder: Path) -> str:
    frame = pd.DataFrame({"name": [text.encode("utf-8", "replace").decode()], "value": [1.0]})
    bars = alt.Chart(frame).mark_bar().encode(x="name", y="value")
    chart = alt.LayerChart(layer=[bars], title=text)
    save_plot(chart, folder / "plot.html")
    return (folder / "plot.html").read_text()


def write_page(text: str, folder: Path) -> str:
    return open_templates().from_string("<p>{{ text }}</p>").render(text=text)


def print_console(text: str, folder: Path) -> str:
    file = io.StringIO()
    make_console(file).print(text, soft_wrap=True)
    return file.getvalue()


SINK_FUNCTIONS: dict[str, Callable[[str, Path], str]] = {
    "file": write_file,
    "csv": write_table,
    "plot": write_plot,
    "page": write_page,
    "console": print_console,
    "message": lambda text, _: format_message(text),
    "markdown": lambda text, _: escape_markdown(text),
    "comment": lambda text, _: escape_comment(text),
    "latex": lambda text, _: escape_latex(text),
    "slack": lambda text, _: escape_slack(text),
}


@pytest.mark.parametrize("name", SINK_FUNCTIONS)
def test_nothing_that_steers_a_reader_passes(name: str, tmp_path: Path) -> None:
    written = SINK_FUNCTIONS[name](HOSTILE, tmp_path)
    assert STEERING.findall(written) == []
    assert "alert(1)" in written.replace("\\", "")


@pytest.mark.parametrize("name", ["page", "plot", "markdown", "comment", "latex", "slack"])
def test_no_text_is_read_as_a_tag(name: str, tmp_path: Path) -> None:
    written = SINK_FUNCTIONS[name](HOSTILE, tmp_path)
    assert re.search(r"(?<!\\)</?(b|script)>\s*alert", written) is None
    assert re.search(r"(?<!\\)<b>", written) is None


def test_no_text_is_calculated(tmp_path: Path) -> None:
    assert write_table(HOSTILE, tmp_path).splitlines()[1].startswith("'=cmd()")


def test_an_echoed_document_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    echo(HOSTILE)
    assert STEERING.findall(capsys.readouterr().out) == []


@pytest.mark.parametrize("check", [check_dns_label, check_label_value])
def test_no_name_of_kubernetes_holds_such_a_text(check: Callable[[str], str]) -> None:
    for letter in "\x1b\u202e\n<=":
        with pytest.raises(ValueError, match="letters or digits at its ends|no '-' at its ends"):
            check(f"a{letter}b")


def test_terminal_and_files_agree_on_the_marks_of_direction() -> None:
    assert replace_steering("".join(map(chr, BIDIRECTIONAL_MARKS))) == "\ufffd" * len(BIDIRECTIONAL_MARKS)

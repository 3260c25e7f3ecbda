"""Strategies for what surrounds the tool: names of files, programs that it starts, variables, the command line."""

import json
import shlex

from hypothesis import strategies as st

from fuzz.inputs import Contents
from fuzz.markers import SECRET, TEXTS
from fuzz.mutations import dump_json
from fuzz.workspaces import RUN_A
from runner.commands.catalog import COMMANDS

ODD_NAMES = (
    *(
        "\n.json",
        "\x1b[31m.json",
        "\u202egnp.json",
        "\udcff.json",
        "x" * 250,
        " ",
        "-rf",
        "=1.json",
        ".hidden",
        "..json",
    ),
    *(
        "1-a1.json.json",
        "1-a1 (copy).json",
        "01-a1.json",
        "0-a1.json",
        "1-a1.JSON",
        "99999999999999999999-a1.json",
        "1-.json",
    ),
    *(
        "1-a1.json/x",
        "<img src=x onerror=fuzzed()>.json",
        "\u00e9.json",
        "e\u0301.json",
        ".benchmatrix-0.tmp",
        "run.json",
    ),
)
FOLDERS = (
    "runs",
    f"runs/{RUN_A}",
    f"runs/{RUN_A}/results",
    f"runs/{RUN_A}/results/x-00000000",
    "tables",
    "nights",
    "latest",
    "",
)
file_names: Contents = st.lists(
    st.builds("/".join, st.lists(st.sampled_from(FOLDERS) | st.sampled_from(ODD_NAMES), min_size=2, max_size=3)),
    min_size=1,
    max_size=4,
).map(dump_json)
PRINTED = (
    b"",
    b"\x00\xff",
    b"sha256:" + b"0" * 64,
    b"[]",
    b"{}",
    b"7\n8\n",
    TEXTS[-1].encode(),
    b"\x1b[2J",
    b"x" * 100_000,
)
programs: Contents = st.one_of(
    st.builds(
        lambda printed, code: b"#!/bin/sh\n/bin/cat <<'E_O_F'\n" + printed + b"\nE_O_F\nexit %d\n" % code,
        st.sampled_from(PRINTED) | st.binary(max_size=30).filter(lambda data: b"\x00" not in data),
        st.sampled_from([0, 0, 0, 1, 125, 255]),
    ),
    st.sampled_from([b"#!/bin/sh\nkill -9 $$\n", b"#!/no/such\n", b"\x7fELF", b""]),
)
VARIABLES = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ACCESS_KEY_ID": "AKIA",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": SECRET,
    "AWS_REGION": "us-east-1",
    "AWS_PROFILE": "default",
    "AWS_CA_BUNDLE": "nowhere",
    "COLUMNS": "80",
    "LINES": "24",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "LANG": "C",
    "PYTHONIOENCODING": "ascii",
    "KUBECONFIG": "kubeconfig",
    "HOME": "home",
    "XDG_CACHE_HOME": "home/cache",
    "TMPDIR": "home",
    "SLACK_URL": f"https://hooks.example/{SECRET}",
    "TZ": "UTC",
}


@st.composite
def draw_variables(draw: st.DrawFn) -> bytes:
    """Draw variables of the environment, one to three of them odd."""
    names = draw(st.lists(st.sampled_from(list(VARIABLES)), min_size=1, max_size=3))
    odd = st.sampled_from(
        ["", " ", "²", "0", "-1", "99999999999", "nan", "http://a:b@c", "http://[", "https://x:99999", "~x/y"]
    )
    own = {name: draw(odd | st.sampled_from(TEXTS)) for name in names}
    return dump_json({name: value.replace("\0", "").replace("\ud800", "") for name, value in own.items()})


environments: Contents = draw_variables()
EXAMPLES = [shlex.split(words) for entry in COMMANDS for _, words in entry.examples]
# `run` measures: it is only planned here. `probe` measures too, with an interpreter that fails at once.
SAFE_ENDS = {"run": ["--dry-run"], "probe": ["--python", "bin/plugin"]}
ODD_WORDS = [word for word in TEXTS if "\0" not in word and "\ud800" not in word and not word.startswith("/")]
URLS = (
    *(
        f"s3://AKIA:{SECRET}@bucket/x",
        f"s3://bucket/x?secret={SECRET}#y",
        f"AKIA:{SECRET}@bucket",
        f"file://u:{SECRET}@h/x",
    ),
    *(
        f"https://u:{SECRET}@127.0.0.1:1/x.csv",
        "s3://",
        "s3:///x",
        "file://",
        "file://matrix.yaml",
        "s3://b/../..",
        "gs://",
        "az://x",
    ),
    *(
        "file://~nosuchuser",
        "2^63",
        "nan",
        "inf",
        "-1",
        "0",
        "1e400",
        "9" * 400,
        "²",
        "--",
        "-",
        "a=b=c",
        "=",
        "cpu=",
        "=1",
        "1d",
        "0d",
    ),
)
odd_words = st.sampled_from(ODD_WORDS) | st.sampled_from(URLS) | st.integers(-(2**70), 2**70).map(str)


@st.composite
def draw_words(draw: st.DrawFn) -> bytes:
    """Draw a command line: an example of the catalog with a word replaced, added or taken away."""
    words = list(draw(st.sampled_from(EXAMPLES)))
    known = {
        "RUN_ID": RUN_A,
        "RUN_A": RUN_A,
        "my.yaml": "matrix.yaml",
        "ours.yaml": "scenario.yaml",
        "mine.csv": "values.csv",
    }
    words = [known.get(word, word) for word in words]
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        place = draw(st.integers(1, len(words)))
        action = draw(st.sampled_from(["replace", "replace", "insert", "remove"]))
        words[place : place + (action != "insert")] = [] if action == "remove" else [draw(odd_words)]
    words += SAFE_ENDS.get(words[0], [])
    return json.dumps([word for word in words if word != "/"]).encode()


command_lines: Contents = draw_words()

"""What a shell offers, lengths of time as users write them, what options change, and what is said to do next."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from access_scenarios import describe_scenario
from bench.errors import UserError
from bench.schema import Cluster
from bench.store import Store
from factories import make_cell, make_environment, make_gpu, make_gpu_use, make_run, make_validity
from kubeconfigs import write_kubeconfig
from nights import SimulatedNights
from runner.commands.options import complete_run_id, format_place, format_resumption, parse_duration
from two_runs import EVEN, put_run
from workspace import CallMain, Workspace


def make_context(store: str | None) -> SimpleNamespace:
    return SimpleNamespace(params={"store": store})


def make_runs(folder: Path, *names: str) -> None:
    for age, name in enumerate(names):
        path = folder / "runs" / name
        path.mkdir(parents=True)
        os.utime(path, (1e9 - age, 1e9 - age))


def test_runs_of_the_default_store_come_the_newest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_runs(tmp_path / "results", "smoke-2", "smoke-1", "paper-1")
    monkeypatch.chdir(tmp_path)

    assert complete_run_id(make_context(None), "") == ["smoke-2", "smoke-1", "paper-1"]
    assert complete_run_id(make_context(None), "smoke") == ["smoke-2", "smoke-1"]


def test_runs_are_those_of_the_store_that_was_typed_and_no_bucket_is_asked(tmp_path: Path) -> None:
    make_runs(tmp_path / "mine", "a")

    assert complete_run_id(make_context(f"file://{tmp_path}/mine"), "") == ["a"]
    assert complete_run_id(make_context(f"file://{tmp_path}/none"), "") == []
    assert complete_run_id(make_context("s3://bucket/runs"), "") == []
    assert complete_run_id(make_context("mine"), "") == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("28800.0", 28_800),
        ("90s", 90),
        ("1.5m", 90),
        ("8h", 28_800),
        ("500ms", 0.5),
        ("2d", 172_800),
        ("12w", 7_257_600),
    ],
)
def test_a_length_of_time_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert parse_duration("--deadline", text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0h", "-1", "soon", "8 h", "8H", "h", "1h30m", "١h", "nan", "inf"])
def test_what_is_none_is_refused_with_the_option_and_what_it_takes(text: str) -> None:
    with pytest.raises(UserError, match=f"^--deadline {text}: expected a time above 0, at most 31 years, such as 20ms"):
        parse_duration("--deadline", text)


STORE = "--store file://there"
COST = f"cost gpu {STORE} --prices prices.yaml"
FIGURE = f"report cpu {STORE} --output a.svg --figure modes"
FORECAST = "forecast --year 2028"


@pytest.fixture
def folder(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store `there` of runs that differ in what options tell apart, and files that options name."""
    folder, there = workspace.folder, workspace.folder / "there"
    on_gpu: Any = {"environment": make_environment(gpus=(make_gpu(),)), "gpu_use": (make_gpu_use(),)}
    put_run(there, "gpu", {make_cell(device="gpu"): EVEN}, day=1, **on_gpu)
    put_run(there, "hot", {make_cell(device="gpu"): EVEN}, **on_gpu)
    put_run(there, "cpu", {make_cell(): EVEN, make_cell(mode="compiled"): EVEN})
    put_run(there, "old", {make_cell(): EVEN}, environment=make_environment(cpu_model="Old"))
    put_run(there, "noisy", {make_cell(): EVEN}, validity=make_validity("contaminated"))
    SimulatedNights(store=Store.open(there.as_uri()), matrix="other").put_night(-9)
    box = "{cloud: ours, region: cellar, machine: box, price_per_hour: 3.6, gpu: T4, num_gpus: 4"
    boxes = [
        box,
        box.replace("3.6", "1.8").replace("cellar", "attic").replace("num_gpus: 4", "num_gpus: 1"),
        box.replace("ours", "other"),
    ]
    plain = box.partition(", gpu")[0].replace("box", "plain").replace("3.6", "0.36")
    prices = ", ".join(f"{one}, vcpus: 8, date: 2026-01-31, source: books}}" for one in [*boxes, plain])
    (folder / "prices.yaml").write_text(f"{{title: Ours, currency: EUR, prices: [{prices}]}}")
    (folder / "ours.yaml").write_text(json.dumps(describe_scenario(policies=["exclusive"])))
    models = "".join(f"{2004 + n // 2}-07-01,{2.0**n},m,{n % 2}\n" for n in range(44))
    (folder / "models.csv").write_text(f"Publication date,Parameters,Model,Odd\n{models}")
    write_kubeconfig(folder / "kubeconfig", context="kind-lab")
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    monkeypatch.setenv("COLUMNS", "300")
    return folder


@pytest.mark.parametrize(
    ("command", "options", "effects"),
    [
        ("run quick.yaml --python ./python --dry-run --machine cpu=plain", "--prices prices.yaml", "0.36 per hour"),
        ("render quick.yaml --machine cpu=plain", "--prices prices.yaml", "0.36 per hour"),
        ("render quick.yaml --store s3://b/x --manifests m", "--on kind-lab", "4 Jobs of run quick in m"),
        ("setup --on kind-lab --dry-run --no-s3", "--s3 --queue q", '"Deployment"; "workloads"'),
        ("report --text", f"cpu {STORE}", "PyTorch compiled"),
        (f"report gpu {STORE} --output a.html", "--prices prices.yaml", "EUR"),
        (FIGURE.partition(" --figure")[0].replace(".svg", ""), "--output a.svg --figure modes", "<svg "),
        (f"{FIGURE} --no-title", "--title --columns 2", 'conv6 train, CPU, 32 px</text>; width="182mm"'),
        (f"compare gpu hot {STORE}", "--metric energy --fail-undecided", "energy per sample; exit code 2"),
        (f"compare cpu noisy {STORE}", "--include-invalid", "of 1 cell 1 within the floor"),
        (f"compare cpu old {STORE}", "--same-hardware", "ran on different hardware"),
        ("audit study --run cpu", STORE, "claims: "),
        ("cost", STORE, "energy and CO2 of 1,000 samples"),
        (COST, "--cloud other", "other cellar box (4 x T4)"),
        (COST, "--region attic", "ours attic box (T4)"),
        (f"{COST} --dataset 1000", "--whole-machines --epochs 3", "ours attic box (T4); 3 epochs of"),
        (COST, "--max-step-time 20ms", "in steps of at most 20 ms"),
        ("access ours.yaml", "--output answer.txt", "answer.txt"),
        (f"{FORECAST} --table models.csv", "--quantity parameters", "Parameters of one model, in 2028"),
        (f"{FORECAST} --table models.csv --quantity parameters", "--where Odd=1 --since 2010 --at-least 1e5",
            "22 of 44 rows left out: not selected by --where; 6 of 44 rows left out: before 2010; left out: below "),
        (f"{FORECAST} --demand models.csv", "--demand-where Odd=1 --demand-since 2010 --demand-factor 4e-9",
            "22 of 44 rows left out: not selected by --where; before 2010; counts as 4.00e-09 GB"),
        (f"{FORECAST} --demand models.csv", "--demand-series median", "of one model, the median of the year"),
        ("watch --matrix smoke", STORE, "night gpu: 1 cell, the newest"),
        ("watch", f"{STORE} --matrix other", "nights of other"),
        ("schema", "status", '"StatusDocument"'),
    ],
)  # fmt: skip
def test_options_have_their_effects(
    command: str, options: str, effects: str, folder: Path, call_main: CallMain
) -> None:
    """Beside what other tests say of options: what is said or written with them, and not without them."""
    plain, given = (read_all(folder, call_main(*words.split())) for words in (command, f"{command} {options}"))
    assert [effect for effect in effects.split("; ") if effect in plain or effect not in given] == []


def read_all(folder: Path, ended: tuple[int, str, str]) -> str:
    """Return how a command ended, and what it said and wrote."""
    code, out, err = ended
    return "\n".join([f"exit code {code}", out, err, *(path.read_text() for path in folder.glob("a.*[gl]"))])


def test_the_next_command_goes_where_this_one_went() -> None:
    assert format_place("current", None, None) == "--on current"
    words = format_place("gke_team-a", "my profiles/t4.yaml", "team-a", "nightly")
    assert words == "--on gke_team-a --profile 'my profiles/t4.yaml' --namespace team-a --queue nightly"


def test_a_matrix_of_the_users_own_is_named_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = make_run(run_id="q-1").model_copy(update={"matrix": "question"})
    resumption = "benchmatrix run {} --run-id q-1"
    assert format_resumption(run, "file://results", None, None) == resumption.format("MATRIX")
    (tmp_path / "question.yaml").touch()
    assert format_resumption(run, "file://results", None, None) == resumption.format("question.yaml")


def test_a_run_of_a_cluster_is_not_resumed_on_the_users_own_machine() -> None:
    cluster = Cluster(context="gke_a_b_c", namespace="team-a", profile="gke", queue="nightly")
    run = make_run(run_id="night-1").model_copy(update={"cluster": cluster})
    store, command = (
        "s3://bucket/runs",
        f"benchmatrix run {run.matrix} --on {{}} --queue nightly --store {{}} --run-id night-1",
    )
    assert format_resumption(run, store, None, None) == command.format("gke_a_b_c --profile gke", store)
    there = "other --profile gke --namespace team-b"
    assert format_resumption(run, store, "other", "team-b") == command.format(there, store)

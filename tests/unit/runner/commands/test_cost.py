"""The command `cost`."""

import json
from pathlib import Path

import pytest

from factories import make_cell, make_environment, make_gpu, make_gpu_use, make_validity
from two_runs import EVEN, put_run
from workspace import CallMain, Workspace

PRICES = """\
title: Ours
currency: EUR
prices:
  - {cloud: ours, region: cellar, machine: box, price_per_hour: 3.6, gpu: T4, vcpus: 8, date: 2026-01-31, source: books}
  - {cloud: ours, region: cellar, machine: plain, price_per_hour: 0.36, vcpus: 8, date: 2026-01-31, source: books}
"""


@pytest.fixture
def store(workspace: Workspace) -> Path:
    """A store with a run on a T4 and a newer one on its CPU, and a price table beside it."""
    folder = workspace.folder / "results"
    folder.mkdir()
    environment = make_environment(gpus=(make_gpu(),))
    put_run(folder, "gpu", {make_cell(device="gpu"): EVEN}, environment=environment, gpu_use=(make_gpu_use(),))
    put_run(folder, "cpu", {make_cell(): EVEN}, day=1)
    (workspace.folder / "prices.yaml").write_text(PRICES)
    return folder


def test_the_newest_run_is_costed_by_the_shipped_prices(call_main: CallMain, store: Path) -> None:
    code, out, err = call_main("cost")
    assert (code, err) == (0, "")
    assert out.startswith("Energy of 1,000 samples\ncell ")
    assert "1 cell: no price for Intel(R) Xeon(R) CPU @ 2.20GHz: name a machine that stands for it (--machine" in out
    code, out, _ = call_main("cost", "gpu")
    assert (code, "EKS us-east-1 g4dn.xlarge (T4)" in out, ", spot" in out) == (0, True, False)
    assert "EKS us-east-1 g4dn.xlarge (T4), spot" in call_main("cost", "gpu", "--spot")[1]


def test_a_run_of_which_nothing_counts_is_no_table_and_says_so(call_main: CallMain, workspace: Workspace) -> None:
    folder = workspace.folder / "results"
    folder.mkdir()
    put_run(folder, "noisy", {make_cell(): EVEN}, validity=make_validity("contaminated"))

    code, out, err = call_main("cost")

    assert (code, err) == (0, "")
    assert out.startswith("No cell has a repeat that counts, so nothing is costed")


def test_two_runs_answer_whether_a_cpu_is_cheaper(call_main: CallMain, store: Path) -> None:
    words = ("gpu", "cpu", "--prices", "prices.yaml", "--machine", "cpu=plain")
    code, out, err = call_main("cost", *words, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    # As fast, at a tenth of the price.
    (answer,) = document["cpu_answers"]
    assert (answer["verdict"], round(answer["ratio"]["value"], 9)) == ("cpu", 0.1)
    assert document["currency"] == "EUR"
    code, page, _ = call_main("cost", *words, "--markdown")
    assert (code, page.startswith("**Cost, energy and CO2 of 1,000 samples**\n")) == (0, True)
    assert "- conv6 train, 32 px, fp32: a CPU node is cheaper: ours cellar plain costs 0.100" in page


def test_a_job_has_a_deadline_and_a_budget(call_main: CallMain, store: Path, workspace: Workspace) -> None:
    # 64,000 samples are 1,000 steps of a tenth of a second: 100 s, at 0.001 EUR a second.
    words = ("gpu", "--prices", "prices.yaml", "--dataset", "64000", "--deadline", "2m", "--max-cost", "0.05")
    code, out, _ = call_main("cost", *words, "--output", "cost.txt")
    assert (code, out) == (0, "cost.txt\n")
    text = (workspace.folder / "cost.txt").read_text()
    assert text.startswith("Time, cost, energy and CO2 of 1 epoch of 64,000 samples (a data set of 64,000 samples)\n")
    assert "the cheapest within 0.03333 h is ours cellar box (T4) with conv6 train, GPU" in text
    assert (
        "nothing that was measured and priced is done for at most 0.05 EUR; the cheapest is ours cellar box (T4)"
        in text
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("none", "store file://results: has no run 'none'; did you mean "),
        ("--json --markdown", "--json and --markdown: give one of them"),
        ("--deadline 2h", "--deadline: is for a whole job; say which with --dataset"),
        ("--max-cost -1 --dataset cifar10", "--max-cost -1: expected a number above 0"),
        ("--max-step-time 20us", "--max-step-time 20us: expected a time above 0, at most 31 years, such as 20ms"),
        ("--epochs 1e300 --dataset cifar10", "--epochs 1e+300: expected a number above 0, at most"),
        ("--cloud nope", "--cloud nope: prices.yaml has no prices of it; known are "),
        ("--region nowhere --cloud EKS", "--region nowhere: prices.yaml has no prices of it in EKS; "),
        ("--machine cpu=a --machine cpu=b", "--machine cpu=b: cpu is given twice, first a; give it once"),
        ("--dataset 1,5", "--dataset 1,5: is no known data set; known are imagenet, cifar10, horse2zebra. Of another"),
        ("--dataset 0", "--dataset 0: is no known data set; known are"),
        ("--dataset cifar", "--dataset cifar: is no known data set; did you mean 'cifar10'?"),
        ("--machine plain", "--machine plain: expected cpu=MACHINE or gpu=MACHINE"),
        ("--machine cpu=m6i.xlarg", "--machine cpu=m6i.xlarg: prices.yaml has no such machine type; did you"),
        ("--prices mine.yaml", "mine.yaml: there is no such file"),
    ],
)
def test_an_error_is_one_message(call_main: CallMain, store: Path, words: str, message: str) -> None:
    code, out, err = call_main("cost", *words.split())
    assert (code, out, err.startswith(f"error: {message}"), len(err.splitlines())) == (2, "", True, 1), err

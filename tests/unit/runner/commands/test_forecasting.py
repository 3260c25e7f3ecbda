"""The commands `forecast` and `probe --run` as a user calls them."""

from pathlib import Path
from typing import Any

from bench.store import Store
from factories import (
    make_cell,
    make_environment,
    make_gpu,
    make_gpu_use,
    make_memory,
    make_result,
    make_run,
    put_documents,
)
from workspace import CallMain, Workspace

MIB = 2**20


def test_a_series_of_ones_own_is_forecast_with_its_winner_and_drawn(call_main: CallMain, workspace: Workspace) -> None:
    rows = "".join(f"{2000 + year},{3.0**year}\n" for year in range(16))
    (workspace.folder / "own.csv").write_text(f"day,price\n{rows}")
    code, out, err = call_main(
        "forecast", "--table", "own.csv", "--date", "day", "--value", "price", "--unit", "USD", "--series", "frontier",
        "--year", "2018", "--level", "90", "--plot", "own.svg",
    )  # fmt: skip
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert words.startswith("Price, the largest of the year, in 2018, from 16 observations, 2000 to 2015:")
    assert "Growth (log-linear, 16 observations): a factor of 3.00 a year (90 % confidence interval" in words
    assert "USD" in (workspace.folder / "own.svg").read_text()


def test_the_gap_to_a_demand_is_printed(call_main: CallMain, workspace: Workspace) -> None:
    rows = "".join(f"{2008 + year}-07-01,{1e8 * 2.0**year},m\n" for year in range(18))
    (workspace.folder / "models.csv").write_text(f"Publication date,Parameters,Model\n{rows}")
    code, out, err = call_main("forecast", "--demand", "models.csv", "--year", "2028")
    assert (code, err) == (0, "")
    assert "2028: demand over supply is forecast to be " in " ".join(out.split())


def put_batches(folder: Path, *sizes: int, new_sizes: tuple[int, ...] = (), **overrides: Any) -> None:
    """Store a run of ResNet18 on a GPU whose tensors take 200 MiB and 100 MiB a sample, less 1 MiB for odd batches.

    `new_sizes`: batches that ran in a newer PyTorch.
    """
    model: dict[str, Any] = {"model": "resnet18", "device": "gpu", "input_size": 224} | overrides
    cells = [make_cell(**model, batch_size=size) for size in (*sizes, *new_sizes)]
    old, new = ({"torch": version} for version in ("2.11.0", "2.14.0"))
    results = [
        make_result(
            cell,
            step_seconds=(1.0,) * 3,  # within what the card can do
            environment=make_environment(gpus=(make_gpu(),), versions=new if cell.batch_size in new_sizes else old),
            gpu_use=(make_gpu_use(),),
            memory=make_memory(peak_memory_allocated_bytes=(200 + 100 * cell.batch_size - cell.batch_size % 2) * MIB),
        )
        for cell in cells
    ]
    put_documents(Store.open((folder / "results").as_uri()), make_run(cells=cells, repeats=1), results)


def test_largest_batches_are_predicted_from_the_batches_of_one_version(
    call_main: CallMain, workspace: Workspace
) -> None:
    put_batches(workspace.folder / "there", 8, 15, 32, 64, new_sizes=(128,))
    words = ("probe", "--run", "smoke-20260301-120000-ab12", "--store", "file://there/results", "--level", "80")
    code, out, err = call_main(*words)
    assert (code, err) == (0, "")
    assert "80 %" in out
    text = " ".join(out.split())
    assert "resnet18 train, pytorch 2.11.0 eager, fp32, size 224, Tesla T4" in text
    assert "from 4 batches, 8 to 64" in text
    assert "16 GB (T4) 13" in text


def test_runs_and_levels_that_say_nothing_are_one_message(call_main: CallMain, workspace: Workspace) -> None:
    put_batches(workspace.folder, 8)
    code, _, err = call_main("probe", "--run", "smoke-20260301-120000-ab12")
    assert code == 2
    assert "no GPU cell ended ok at two batch sizes or more" in err
    code, _, err = call_main("probe", "--run", "smoke-20260301-120000-ab12", "--level", "0")
    assert "--level 0: expected a percentage" in err
